//! Models for loom: every interleaving of a few steps, under the C11 memory model.

mod locks;
mod queues;
mod waiting;

/// Explores a model. The bound on pre-emptions keeps it to minutes; most errors show with two.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(3));
    builder.check(move || {
        crate::lock::free_nodes();
        model();
    });
}
