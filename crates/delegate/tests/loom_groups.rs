//! Lone calls answered in ffwd's response lines, under loom: see `loom_channel` for how.
#![cfg(corelay_loom)]

mod model;

use corelay_delegate::{ClientGuard, Trustees};
use corelay_sync::facade::thread;
use model::{Flag, explored, long_excerpt, model};

fn trustees() -> Trustees {
    let builder = Trustees::dedicated(1).window(2).response_groups(true);
    builder.start().unwrap()
}

#[test]
fn answers_of_a_word_and_of_more() {
    model(|| {
        let trustees = trustees();
        let value = trustees.entrust(1u64);
        assert_eq!(value.apply(|v| *v + 1), 2);
        assert_eq!(value.apply(|v| [*v, 7]), [1, 7]);
        drop(value);
        drop(ClientGuard::new());
        trustees.shutdown();
    });
}

/// Both have their seats already, and the trustee answers the two calls together or not.
#[test]
fn two_clients_of_a_group() {
    long_excerpt(|| {
        let trustees = trustees();
        let value = trustees.entrust(0u64);
        let add = |v: &mut u64| {
            *v += 1;
            *v
        };
        let (seated, go) = (Flag::new(), Flag::new());
        let other = {
            let (value, seated, go) = (value.clone(), seated.clone(), go.clone());
            thread::spawn(move || {
                let _guard = ClientGuard::new();
                value.apply(add);
                seated.raise();
                go.wait();
                value.apply(add)
            })
        };
        value.apply(add);
        seated.wait();
        let (here, there) = explored(|| {
            go.raise();
            (value.apply(add), other.join().unwrap())
        });
        assert_eq!(here + there, 3 + 4);
        drop(value);
        drop(ClientGuard::new());
        trustees.shutdown();
    });
}
