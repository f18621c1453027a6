//! memcached's protocol: what clients write and read.
//!
//! | file | idea |
//! |---|---|
//! | `binary` | the header of a binary request as a [`Command`](binary::Command), and answers |
//! | `meta` | the flags of meta commands |
//! | `number` | numbers as memcached reads them |
//! | `text` | a line of the text protocol as a [`Command`](text::Command) |

pub(crate) mod binary;
pub(crate) mod meta;
pub(crate) mod number;
pub(crate) mod text;
