//! The default name of a strategy.

/// Returns the name of a type without its path and parameters.
pub(crate) fn type_name<T: ?Sized>() -> &'static str {
    let path = std::any::type_name::<T>();
    let path = path.split('<').next().unwrap_or(path);
    path.rsplit("::").next().unwrap_or(path)
}
