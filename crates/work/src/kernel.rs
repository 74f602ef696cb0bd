mod exponential;
mod gray;
mod job;
mod search;
mod sort;

pub use job::Job;

use crate::WorkError;

/// The compute kernels of the published isolation study.
///
/// SOURCE: the evaluation chapter of the thesis on load balancing of `ReCodEx` workers; sizes and
/// algorithms as printed there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// `(1 + x/1024)^1024` by 1024 successive multiplications in single precision.
    ExpFloat,
    /// The same in double precision.
    ExpDouble,
    /// Lower-bound look-ups in a sorted array.
    BinarySearch,
    /// Gray code to binary, bit by bit.
    GrayToBinary,
    /// Insertion sort.
    InsertionSort,
    /// Recursive quicksort with the middle element as pivot.
    QuickSort,
}

/// How much one iteration of a kernel does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// Numbers in the input.
    pub size: u64,
    /// Operations over the input; `None` where the size alone decides (sorts).
    pub operations: Option<u64>,
}

/// How the time of an iteration grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    /// With the number of operations.
    Operations,
    /// With the square of the size.
    Square,
    /// With `size * log2(size)`.
    SizeLogSize,
}

impl Kernel {
    /// All kernels.
    pub const ALL: [Self; 6] = [
        Self::ExpFloat,
        Self::ExpDouble,
        Self::BinarySearch,
        Self::GrayToBinary,
        Self::InsertionSort,
        Self::QuickSort,
    ];

    /// Name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ExpFloat => "exp_float",
            Self::ExpDouble => "exp_double",
            Self::BinarySearch => "bsearch",
            Self::GrayToBinary => "gray2bin",
            Self::InsertionSort => "insertion_sort",
            Self::QuickSort => "qsort",
        }
    }

    /// The kernel of that name.
    ///
    /// # Errors
    ///
    /// [`WorkError::Usage`] with the known names.
    pub fn from_name(name: &str) -> Result<Self, WorkError> {
        Self::ALL.into_iter().find(|kernel| kernel.name() == name).ok_or_else(|| {
            let known: Vec<String> = Self::ALL.iter().map(|kernel| format!("`{}`", kernel.name())).collect();
            WorkError::usage(format!("`{name}` is not a kernel; known: {}", known.join(", ")))
        })
    }

    /// Size and operations of the published study.
    #[must_use]
    pub const fn published_scale(self) -> Scale {
        match self {
            Self::ExpFloat | Self::ExpDouble => Scale { size: 65_536, operations: Some(65_536) },
            Self::BinarySearch => Scale { size: 65_536, operations: Some(1_048_576) },
            Self::GrayToBinary => Scale { size: 1_048_576, operations: Some(1_048_576) },
            Self::InsertionSort => Scale { size: 16_384, operations: None },
            Self::QuickSort => Scale { size: 1_048_576, operations: None },
        }
    }

    pub(crate) const fn growth(self) -> Growth {
        match self {
            Self::InsertionSort => Growth::Square,
            Self::QuickSort => Growth::SizeLogSize,
            _ => Growth::Operations,
        }
    }

    /// Whether the number of operations can be chosen apart from the size.
    #[must_use]
    pub const fn counts_operations(self) -> bool {
        self.published_scale().operations.is_some()
    }

    /// Generates the input.
    #[must_use]
    pub fn job(self, scale: Scale, seed: u64) -> Box<dyn Job> {
        let size = to_index(scale.size);
        let operations = to_index(scale.operations.unwrap_or(scale.size));
        match self {
            Self::ExpFloat => Box::new(exponential::Powers::<f32>::new(size, operations, seed)),
            Self::ExpDouble => Box::new(exponential::Powers::<f64>::new(size, operations, seed)),
            Self::BinarySearch => Box::new(search::LookUps::new(size, operations, seed)),
            Self::GrayToBinary => Box::new(gray::Decoding::new(size, operations, seed)),
            Self::InsertionSort => Box::new(sort::Sorting::new(sort::insertion_sort, size, seed)),
            Self::QuickSort => Box::new(sort::Sorting::new(sort::quick_sort, size, seed)),
        }
    }
}

/// The command line admits no number beyond `u32::MAX`, so this never saturates in practice.
fn to_index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests;
