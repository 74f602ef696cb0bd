//! Columns of JSON lines, of `steelyard-lines`.

use numpy::PyArray1;
use pyo3::prelude::*;
use steelyard_lines::{Wanted, read_lines};

type Arrays<'py> = (Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<u8>>);

/// Kinds, ends of the texts and texts of the members at some paths, or nothing where a line is not plain.
#[pyfunction]
pub(crate) fn json_columns<'py>(
    py: Python<'py>,
    content: &[u8],
    paths: Vec<Vec<String>>,
) -> Option<Vec<Arrays<'py>>> {
    let found = py.detach(|| read_lines(content, &Wanted::new(&paths)))?;
    let arrays = found.into_iter().map(|column| {
        let kinds = PyArray1::from_vec(py, column.kinds);
        (kinds, PyArray1::from_vec(py, column.ends), PyArray1::from_vec(py, column.text))
    });
    Some(arrays.collect())
}
