//! The waiting seam: how does the code that runs here wait?
mod no_switch;
pub use no_switch::NoSwitch;
