/// Declares numbered constants with Java's names, and the way back from number to name.
macro_rules! codes {
    ($($(#[$meta:meta])* $name:ident = $value:literal;)+) => {
        $($(#[$meta])* pub const $name: i32 = $value;)+

        /// The Java name of a code, or `UNKNOWN`.
        pub const fn name(code: i32) -> &'static str {
            match code {
                $($value => stringify!($name),)+
                _ => "UNKNOWN",
            }
        }
    };
}
pub(crate) use codes;
