//! What is read of a line, and how it is given.

/// Members that are wanted, each by its path from the top of a line.
#[derive(Debug)]
pub struct Wanted {
    pub(crate) nodes: Vec<Node>,
    pub(crate) columns: usize,
}

/// A member on the way to those that are wanted, or one of them.
#[derive(Debug, Default)]
pub(crate) struct Node {
    children: Vec<(Vec<u8>, usize)>,
    pub(crate) column: Option<usize>,
}

impl Wanted {
    /// Takes paths; the columns come in their order. An empty path is the line itself.
    #[must_use]
    pub fn new<P: AsRef<[S]>, S: AsRef<str>>(paths: &[P]) -> Self {
        let mut found = Self { nodes: vec![Node::default()], columns: paths.len() };
        for (column, path) in paths.iter().enumerate() {
            let mut place = 0;
            for name in path.as_ref() {
                place = found.child_or_new(place, name.as_ref().as_bytes());
            }
            found.nodes[place].column = Some(column);
        }
        found
    }

    fn child_or_new(&mut self, place: usize, name: &[u8]) -> usize {
        if let Some(child) = self.child(place, name) {
            return child;
        }
        let child = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[place].children.push((name.to_vec(), child));
        child
    }

    pub(crate) fn child(&self, place: usize, name: &[u8]) -> Option<usize> {
        self.nodes[place].children.iter().find(|(known, _)| known == name).map(|(_, child)| *child)
    }
}

/// A member of every line.
#[derive(Debug)]
pub struct Column {
    /// What it is in each line, as numbers of [`Kind`].
    pub kinds: Vec<u8>,
    /// Where its text ends in [`Column::text`], for each line; before them a zero.
    pub ends: Vec<i32>,
    /// Texts without their quotes and escapes, and numbers as they are written; nothing of other kinds.
    pub text: Vec<u8>,
}
