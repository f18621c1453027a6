//! A value that must not leave its thread, shared between threads: its trustee builds it, and it
//! stays there.
//!
//! `cargo run -p corelay --example not_send`

use corelay::Trustees;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::rc::Rc;
use std::thread;

/// A small tree of `Rc`s and cells, as parsers, interpreters and toolkits have them.
/// Neither `Send` nor `Sync`.
struct Node {
    name: &'static str,
    visits: Cell<u32>,
    children: RefCell<Vec<Rc<Node>>>,
}

impl Node {
    fn new(name: &'static str) -> Rc<Self> {
        Rc::new(Self {
            name,
            visits: Cell::new(0),
            children: RefCell::default(),
        })
    }

    fn visit(&self, depth: usize) -> usize {
        self.visits.set(self.visits.get() + 1);
        let children = self.children.borrow();
        let below = children.iter().map(|child| child.visit(depth + 1)).max();
        below.unwrap_or(depth)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let trustees = Trustees::dedicated(1).start()?;
    // `entrust` would not compile here: the closure that builds the tree travels, not the tree.
    let tree = trustees.entrust_with(|| {
        let (root, leaf) = (Node::new("root"), Node::new("leaf"));
        let twig = Node::new("twig");
        twig.children.borrow_mut().push(Rc::clone(&leaf));
        root.children.borrow_mut().extend([twig, leaf]); // the leaf has two parents
        root
    });

    // The handle can go anywhere. The answers have to be `Send`; the tree does not.
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| assert_eq!(tree.apply(|root| root.visit(0)), 2));
        }
    });

    let leaf = tree.apply(|root| {
        let children = root.children.borrow();
        (
            children[1].name,
            children[1].visits.get(),
            Rc::strong_count(&children[1]),
        )
    });
    println!(
        "4 threads visited the tree; its {} was seen {} times by {} parents",
        leaf.0, leaf.1, leaf.2
    );
    assert_eq!(leaf, ("leaf", 8, 2));

    drop(tree); // the last handle: the trustee drops the tree, on its own thread
    assert_eq!(trustees.shutdown()[0].panics, 0);
    Ok(())
}
