use crate::atomic::{pause, yield_now};

/// A wait for a thread that has a few instructions left, or has lost its core between them.
#[derive(Debug, Default)]
pub(crate) struct Moment {
    pauses: u32,
}

impl Moment {
    /// SOURCE: about a microsecond, many times what the other thread needs if it has a core.
    const MOST_PAUSES: u32 = 100;

    /// Lets the other thread move on; call it between two looks.
    #[cold]
    pub(crate) fn pass(&mut self) {
        // A model tries every thread after each look. Two that wait would look in turn for ever; after the
        // second look in vain nothing new can come of it.
        #[cfg(loom)]
        if self.pauses == 2 {
            loom::skip_branch();
        }
        if self.pauses < Self::MOST_PAUSES {
            self.pauses += 1;
            pause();
        } else {
            yield_now();
        }
    }
}
