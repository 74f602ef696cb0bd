use thiserror::Error;

/// What makes a kernel refuse its input.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum StatsError {
    /// The sample is too small for the procedure.
    #[error("{found} values given, at least {needed} needed")]
    TooFew {
        /// Smallest allowed number of values.
        needed: usize,
        /// Number of values given.
        found: usize,
    },
    /// The sample is larger than indices of 32 bits reach.
    #[error("{found} values given, at most {} allowed", u32::MAX)]
    TooMany {
        /// Number of values given.
        found: usize,
    },
    /// A value is infinite or not a number.
    #[error("value number {index} (from 0) is not finite")]
    NotFinite {
        /// Position of the first such value.
        index: usize,
    },
    /// A probability or level lies outside (0, 1).
    #[error("{name} is {value}; allowed: between 0 and 1, both excluded")]
    Probability {
        /// Which argument.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// A count that must be positive is zero.
    #[error("{name} is 0; allowed: 1 or more")]
    Zero {
        /// Which argument.
        name: &'static str,
    },
    /// Lengths of groups do not add up to the number of values.
    #[error("the lengths of the groups add up to {lengths}, but {values} values are given")]
    Layout {
        /// Sum of the lengths.
        lengths: usize,
        /// Number of values.
        values: usize,
    },
    /// A share to cut at each end leaves nothing.
    #[error("the share cut at each end is {value}; allowed: 0 to below 0.5")]
    Share {
        /// What was given.
        value: f64,
    },
    /// Labels do not go with the values.
    #[error("{found} {name} are given for {needed} values; allowed: one for each value")]
    Labels {
        /// Which labels.
        name: &'static str,
        /// Number of labels given.
        found: usize,
        /// Number of values.
        needed: usize,
    },
    /// A label is larger than there can be groups.
    #[error("{name} hold the number {label}; allowed: 0 to {} for {needed} values", needed - 1)]
    LabelRange {
        /// Which labels.
        name: &'static str,
        /// What was given.
        label: usize,
        /// Number of values.
        needed: usize,
    },
    /// A cluster lies in more than one stratum.
    #[error("cluster number {cluster} (from 0, in sorted order) has values in more than one stratum")]
    Straddling {
        /// Number of the cluster.
        cluster: usize,
    },
    /// A stratum cannot be resampled.
    #[error("stratum number {stratum} (from 0, in sorted order) has {found} units, at least 2 needed")]
    ThinStratum {
        /// Number of the stratum.
        stratum: usize,
        /// Units in it.
        found: usize,
    },
    /// A block is as long as the series, or longer.
    #[error("the length of a block is {length}; allowed: 1 to {} for {count} values", count / 2)]
    Block {
        /// What was given.
        length: usize,
        /// Number of values.
        count: usize,
    },
    /// Two columns of one table differ in length.
    #[error("a column has {found} values, but {needed} are needed")]
    Length {
        /// Number of values given.
        found: usize,
        /// Number of values of the other columns.
        needed: usize,
    },
    /// A number that must be at least 0 is not.
    #[error("{name} is {value}; allowed: 0 or more, finite")]
    Negative {
        /// Which argument.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// A value whose logarithm or share is needed is not positive.
    #[error("value number {index} (from 0) of {name} is not positive")]
    NotPositive {
        /// Which column.
        name: &'static str,
        /// Position of the first such value.
        index: usize,
    },
    /// A number is so large or small that its square, weighted, would not be one any more.
    #[error(
        "{name} holds {value:?}; allowed: {least:?} to {most:?}, and the same below 0 where that is allowed"
    )]
    Size {
        /// Which column or argument.
        name: &'static str,
        /// What was given.
        value: f64,
        /// Smallest allowed size.
        least: f64,
        /// Largest allowed size.
        most: f64,
    },
    /// A break does not lie between two distinct x, or not in ascending order.
    #[error(
        "break number {index} (from 0) at {value} does not lie between two x of the data, above the one before"
    )]
    Break {
        /// Which break.
        index: usize,
        /// Where it was put.
        value: f64,
    },
    /// Power laws are compared on the scale of shares.
    #[error("a power law needs noise that is a share of the level")]
    PowerNoise,
    /// A whole number is negative or too large to be counted.
    #[error("a value is {value}; allowed: 0 to {}", limit - 1)]
    OutOfRange {
        /// What was given.
        value: i64,
        /// What it must stay below.
        limit: i64,
    },
}

impl StatsError {
    /// What to do about it.
    #[must_use]
    pub const fn hint(&self) -> &'static str {
        match self {
            Self::TooFew { .. } => "measure more",
            Self::TooMany { .. } => "give a random part of the values, or one group of them at a time",
            Self::NotFinite { .. } => "remove such values and say how many were removed",
            Self::Probability { .. } => "95 % is 0.95",
            Self::Zero { .. } => "give a positive number",
            Self::Layout { .. } => "give the length of every group, in the order of the values",
            Self::Share { .. } => "a tenth at each end is 0.1",
            Self::Labels { .. } => "repeat the label of a run for each of its values",
            Self::LabelRange { .. } => "number the labels from 0 without gaps",
            Self::Straddling { .. } => "give each cluster one stratum",
            Self::ThinStratum { .. } => "join small strata, or measure more in each",
            Self::Block { .. } => "give a shorter block, or a longer series",
            Self::Length { .. } => "give one value of each column per observation",
            Self::Negative { .. } => "leave the option out for its default",
            Self::NotPositive { .. } => "use constant noise and no power laws",
            Self::Size { .. } => "give the numbers in a unit that suits them",
            Self::Break { .. } => "give breaks inside the range of x, in ascending order",
            Self::PowerNoise => "use proportional noise, or leave power laws out",
            Self::OutOfRange { .. } => {
                "durations are whole nanoseconds; a negative one comes from a clock that was set back"
            }
        }
    }
}
