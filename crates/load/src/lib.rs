//! A service under load, best-effort jobs beside it, and the conductor of a trial of colocation.
//!
//! `steelyard-load --help` shows the command line. The files that a trial leaves are described in
//! `src/steelyard/record/trial.py`.

mod address;
mod client;
mod clock;
mod command;
mod control;
mod error;
mod frame;
mod histogram;
mod http;
mod image;
mod iterations;
mod job;
mod mapping;
mod options;
mod park;
mod part;
mod protocol;
mod record;
mod schedule;
mod service;
mod settings;
mod signal;
mod trial;
mod work;

pub use command::{USAGE, execute};
pub use error::LoadError;
pub use histogram::Histogram;
pub use image::{Image, Scaler, Size};
pub use schedule::{Arrivals, Due, Schedule};
pub use settings::Class;
pub use work::{Calibration, calibrate, measure, work};
