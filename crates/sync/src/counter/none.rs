//! Stand-in for machines whose counters corelay does not know, and for the models.

#[cold]
pub(crate) fn read_anywhere() -> u64 {
    panic!("there is no counter here: ask `counter::usable` first")
}
pub(crate) use {
    read_anywhere as read_between, read_anywhere as read_after_exchange,
    read_anywhere as read_after_stores, read_anywhere as read_fenced,
};
