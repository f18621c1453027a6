//! Order: requests run in the order in which a client makes them to an object, by whatever form,
//! also while others are served.

use crate::support::each_team;
use corelay_delegate::barrier;
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn each_members_requests_arrive_in_order() {
    each_team(|team| {
        let members = team.len();
        // The next number, by member.
        let objects = team.entrust_all(vec![vec![0u32; members]; members]);
        let objects = &objects;
        team.run(|me| {
            let who = me.number();
            let heard = Rc::new(RefCell::new(vec![0u32; members]));
            for n in 0..100 {
                for (to, object) in objects.iter().enumerate() {
                    let check = move |next: &mut Vec<u32>| {
                        assert_eq!(next[who], n, "overtaken");
                        next[who] += 1;
                        n
                    };
                    match n % 4 {
                        0 | 1 => {
                            let heard = Rc::clone(&heard);
                            object.apply_then(check, move |n| {
                                let last = &mut heard.borrow_mut()[to];
                                assert!(n + 1 > *last, "a callback overtook");
                                *last = n + 1;
                            });
                        }
                        2 => object.post(move |next| _ = check(next)),
                        _ => assert_eq!(object.apply(check), n),
                    }
                }
            }
            barrier().expect("nothing was overtaken");
        });
    });
}
