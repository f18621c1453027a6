//! The names of tables, and their numbers in the log.

use super::error::TableError;
use super::record::{TableId, take, take_array};
use std::collections::HashMap;

/// The most bytes of a name or a tag.
const MAX_NAME: usize = u16::MAX as usize;

/// The tables that the log knows.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tables: Vec<Definition>,
    by_name: HashMap<String, u32>,
    /// Definitions that are not in the log yet.
    pending: Vec<u8>,
}

/// A table's name, and the types of its entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) tag: String,
}

impl Catalogue {
    /// A catalogue of tables that are in the log.
    pub(super) fn new(tables: Vec<Definition>) -> Self {
        let names = tables.iter().map(|table| table.name.clone());
        Self {
            by_name: names.zip(0..).collect(),
            tables,
            pending: Vec::new(),
        }
    }

    /// The number of the table `name`, which is defined if it is not.
    pub(super) fn table(&mut self, name: &str, tag: &str) -> Result<TableId, TableError> {
        if let Some(&id) = self.by_name.get(name) {
            let found = &self.tables[id as usize].tag;
            if found != tag {
                return Err(TableError::Tag {
                    name: name.to_owned(),
                    found: found.clone(),
                    wanted: tag.to_owned(),
                });
            }
            return Ok(TableId(id));
        }
        let id = self.tables.len();
        if name.len() > MAX_NAME || tag.len() > MAX_NAME || id >= 1 << 31 {
            let name = name.to_owned();
            return Err(TableError::TooLarge { name });
        }
        let id = id as u32;
        let definition = Definition {
            name: name.to_owned(),
            tag: tag.to_owned(),
        };
        encode(id, &definition, &mut self.pending);
        self.tables.push(definition);
        self.by_name.insert(name.to_owned(), id);
        Ok(TableId(id))
    }

    /// Takes the definitions that are not in the log yet.
    pub(super) fn take_pending(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.pending)
    }

    /// All definitions, encoded.
    pub(super) fn encode_all(&self, bytes: &mut Vec<u8>) {
        for (id, definition) in (0..).zip(&self.tables) {
            encode(id, definition, bytes);
        }
    }
}

fn encode(id: u32, definition: &Definition, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&id.to_le_bytes());
    for text in [&definition.name, &definition.tag] {
        bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
}

/// Calls `each` with the definitions in `bytes`. `None` if they are not definitions.
pub(super) fn for_each(mut bytes: &[u8], mut each: impl FnMut(u32, Definition)) -> Option<()> {
    while !bytes.is_empty() {
        let id = u32::from_le_bytes(take_array(&mut bytes)?);
        let mut text = || {
            let length = u32::from_le_bytes(take_array(&mut bytes)?);
            String::from_utf8(take(&mut bytes, length)?.to_vec()).ok()
        };
        let (name, tag) = (text()?, text()?);
        each(id, Definition { name, tag });
    }
    Some(())
}
