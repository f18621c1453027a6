//! Nodes in a row, each owned by the one before it: a sorted list, or a bucket of a hash table.

/// The rest of a chain: a pointer to its first node, or to none.
///
/// A drop takes the nodes one after the other, so a long chain does not use up the thread's stack.
pub(crate) struct Link<T>(Option<Box<Node<T>>>);

struct Node<T> {
    value: T,
    next: Link<T>,
}

impl<T> Link<T> {
    pub(crate) const END: Self = Self(None);

    /// The first value.
    pub(crate) fn first(&self) -> Option<&T> {
        self.0.as_ref().map(|node| &node.value)
    }

    /// The first value, to be changed.
    pub(crate) fn first_mut(&mut self) -> Option<&mut T> {
        self.0.as_mut().map(|node| &mut node.value)
    }

    /// The first link whose value `is_it` accepts, or else the end.
    pub(crate) fn seek(&mut self, mut is_it: impl FnMut(&T) -> bool) -> &mut Self {
        let mut link = self;
        while link.0.as_ref().is_some_and(|node| !is_it(&node.value)) {
            link = &mut link.0.as_mut().expect("has a node").next;
        }
        link
    }

    /// Puts a value in front of the others.
    pub(crate) fn push(&mut self, value: T) {
        let next = Self(self.0.take());
        self.0 = Some(Box::new(Node { value, next }));
    }

    /// Takes the first value.
    pub(crate) fn pop(&mut self) -> Option<T> {
        let mut node = self.0.take()?;
        self.0 = node.next.0.take();
        Some(node.value)
    }

    /// Moves the nodes whose values `goes` accepts to the front of `other`.
    pub(crate) fn divide(&mut self, other: &mut Self, mut goes: impl FnMut(&T) -> bool) {
        let mut link = self;
        loop {
            link = link.seek(&mut goes);
            let Some(mut node) = link.0.take() else {
                return;
            };
            link.0 = node.next.0.take();
            node.next.0 = other.0.take();
            other.0 = Some(node);
        }
    }

    /// Calls `f` on each value, from the first to the last.
    pub(crate) fn for_each(&mut self, mut f: impl FnMut(&mut T)) {
        let mut link = self;
        while let Some(node) = &mut link.0 {
            f(&mut node.value);
            link = &mut node.next;
        }
    }

    /// Drops the values that `keep` refuses, and subtracts each from `len`.
    pub(crate) fn retain(&mut self, len: &mut usize, mut keep: impl FnMut(&mut T) -> bool) {
        let mut link = self;
        while let Some(value) = link.first_mut() {
            if keep(value) {
                link = &mut link.0.as_mut().expect("has a node").next;
            } else {
                *len -= 1;
                drop(link.pop());
            }
        }
    }
}

impl<T> Drop for Link<T> {
    fn drop(&mut self) {
        // If the drop of a value panics, the rest is still in `self`, and is dropped with it.
        while self.pop().is_some() {}
    }
}

/// The values of a chain, from the first to the last.
pub(crate) struct Iter<'a, T>(&'a Link<T>);

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        let node = self.0.0.as_ref()?;
        self.0 = &node.next;
        Some(&node.value)
    }
}

impl<'a, T> IntoIterator for &'a Link<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        Iter(self)
    }
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

/// The values of a chain, from the first to the last, taken out of it.
pub(crate) struct IntoIter<T>(Link<T>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.pop()
    }
}

impl<T> IntoIterator for Link<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}
