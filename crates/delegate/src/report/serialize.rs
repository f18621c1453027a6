//! Reports for `serde`, in builds with the feature of that name: in the form of
//! [`Report::to_json`].

use super::json::{Node, Part};
use super::{
    ClientObserved, ClientReport, ClosureReport, HeldReport, ObjectReport, Places, Report, State,
    TrusteeObserved, TrusteeReport, TypeReport,
};
use crate::metrics::Metrics;
use serde::{Serialize, Serializer};

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_none(),
            Self::Count(number) => to.serialize_u64(*number),
            Self::Share(number) => to.serialize_f64(*number),
            Self::Text(text) => to.serialize_str(text),
            Self::List(items) => to.collect_seq(items),
            Self::Object(fields) => {
                to.collect_map(fields.iter().map(|(name, value)| (name, value)))
            }
        }
    }
}

macro_rules! serialize {
    ($($part:ty),* $(,)?) => { $(
        impl Serialize for $part {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                self.node().serialize(to)
            }
        }
    )* };
}

serialize!(
    ClientObserved,
    ClientReport,
    ClosureReport,
    HeldReport,
    Metrics,
    ObjectReport,
    Places,
    Report,
    State,
    TrusteeObserved,
    TrusteeReport,
    TypeReport,
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::table::tests::trustee;

    /// A report with a value in each field, and one that lacks what it can.
    #[test]
    fn serde_writes_what_to_json_writes_and_reads_it_back() {
        let mut lacking = trustee();
        lacking.observed = None;
        (lacking.cpu, lacking.node, lacking.metrics) = (None, None, Metrics::default());
        for nodes in [None, Some(2)] {
            let trustees = vec![trustee(), lacking.clone()];
            let report = Report { nodes, trustees };
            let json = serde_json::to_string(&report).expect("a string takes all");
            assert_eq!(json, report.to_json());
            assert_eq!(
                serde_json::from_str::<Report>(&json).expect("just written"),
                report
            );
        }
    }
}
