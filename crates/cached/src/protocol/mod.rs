//! memcached's protocol: what clients write and read.
//!
//! | file | idea |
//! |---|---|
//! | `meta` | the flags of meta commands |
//! | `number` | numbers as memcached reads them |
//! | `text` | a line of the text protocol as a [`Command`](text::Command) |

pub(crate) mod meta;
pub(crate) mod number;
pub(crate) mod text;
