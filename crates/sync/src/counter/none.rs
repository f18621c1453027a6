//! Machines whose counters we do not know, and the models.

#[cold]
pub(crate) fn read_anywhere() -> u64 {
    panic!("there is no counter here: ask `counter::usable` first")
}
pub(crate) use {
    read_anywhere as read_between, read_anywhere as read_behind_exchange,
    read_anywhere as read_behind_stores, read_anywhere as read_fenced,
};
