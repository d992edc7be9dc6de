//! The macros that turn a row of the table into types, readers, writers and builders.

/// Defines the struct of an object with known keys, and everything that [`data_record`] does.
///
/// `NAME "name" "doc" => Struct { field: Type = spec, "doc"; }`
macro_rules! record {
    (
        $TABLE:ident $name:literal $doc:literal => $Config:ident {
            $( $field:ident : $type:ty = $spec:expr, $field_doc:literal; )+
        }
    ) => {
        #[doc = $doc]
        #[derive(Debug, Clone, PartialEq)]
        pub struct $Config {
            $( #[doc = $field_doc] pub $field: $type, )+
        }

        data_record! {
            $TABLE $name $doc => $Config { $( $field = $spec, $field_doc; )+ }
        }
    };
}

/// Defines the static record, the reader and the writer of a struct.
///
/// `NAME "name" "doc" => Struct { field = spec, "doc"; }`
macro_rules! data_record {
    (
        $TABLE:ident $name:literal $doc:literal => $Config:ident {
            $( $field:ident = $spec:expr, $field_doc:literal; )+
        }
    ) => {
        #[doc = $doc]
        pub static $TABLE: Record = Record {
            name: $name,
            doc: $doc,
            fields: &[ $( $spec.named(stringify!($field), $field_doc) ),+ ],
            nullable: false,
        };

        impl Data for $Config {
            fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
                let fields = Fields::of(node, &$TABLE)?;
                Ok(Self { $( $field: fields.read(stringify!($field))? ),+ })
            }

            fn write(&self) -> RawValue {
                object([ $( (stringify!($field), self.$field.write()) ),+ ])
            }
        }
    };
}

/// Defines the static table, the enum, the reader, the writer and the builder of a family.
///
/// A row is `"name" Variant Strategy::constructor "doc" { field: Type = spec, "doc"; }`. A strategy
/// without fields is named without a constructor and without braces. Attributes before a row apply to all that
/// is made of it.
macro_rules! family {
    (
        $TABLE:ident $family:literal $table_doc:literal =>
        $(#[$meta:meta])*
        $Config:ident builds $Built:ty, $wrap:path;
        $(
            $(#[$row:meta])*
            $name:literal $Variant:ident $Strategy:ident $(:: $constructor:ident)? $doc:literal
            $({
                $( $field:ident : $type:ty = $spec:expr, $field_doc:literal; )+
            })?
        )+
    ) => {
        #[doc = $table_doc]
        pub static $TABLE: Family = Family {
            name: $family,
            types: &[ $( $(#[$row])* Record {
                name: $name,
                doc: $doc,
                fields: &[ $( $( $spec.named(stringify!($field), $field_doc) ),+ )? ],
                nullable: false,
            } ),+ ],
        };

        $(#[$meta])*
        #[non_exhaustive]
        pub enum $Config {
            $(
                $(#[$row])*
                #[doc = concat!("[`", stringify!($Strategy), "`](crate::", stringify!($Strategy), "): ", $doc)]
                $Variant $({ $( #[doc = $field_doc] $field: $type, )+ })?,
            )+
        }

        impl $Config {
            #[doc = concat!("Builds the ", $family, ".")]
            ///
            /// # Errors
            ///
            /// [`ConfigErrorKind::Invalid`](super::ConfigErrorKind::Invalid) with the path of the
            /// part that its constructor refused.
            pub fn build(&self) -> Result<$Built, ConfigError> {
                self.clone().into_built()
            }

            pub(crate) fn into_built(self) -> Result<$Built, ConfigError> {
                Ok(match self {
                    $(
                        $(#[$row])*
                        Self::$Variant $({ $( $field ),+ })? =>
                            $wrap($Strategy $(:: $constructor)? $( ($( $field ),+)? )?),
                    )+
                })
            }
        }

        impl Data for $Config {
            fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
                let fields = Fields::of_family(node, &$TABLE)?;
                match fields.record_name() {
                    $(
                        $(#[$row])*
                        $name => Ok(Self::$Variant $({
                            $( $field: fields.read(stringify!($field))? ),+
                        })?),
                    )+
                    other => Err($TABLE.unknown(other)),
                }
            }

            fn write(&self) -> RawValue {
                match self {
                    $(
                        $(#[$row])*
                        Self::$Variant $({ $( $field ),+ })? => object([
                            ("type", RawValue::Text($name.to_owned())),
                            $( $( (stringify!($field), $field.write()) ),+ )?
                        ]),
                    )+
                }
            }
        }
    };
}

/// Implements [`Data`](super::data::Data) for an enum without fields by the names of its variants.
macro_rules! choice {
    ($Type:ty, $NAMES:ident: $( $name:literal => $Variant:ident ),+) => {
        const $NAMES: &[&str] = &[ $( $name ),+ ];

        impl Data for $Type {
            fn read(node: &Node<'_>, _: Shape) -> Result<Self, ConfigError> {
                match as_str(node)? {
                    $( $name => Ok(Self::$Variant), )+
                    other => Err(unknown_choice(other, $NAMES)),
                }
            }

            fn write(&self) -> RawValue {
                RawValue::Text(match self { $( Self::$Variant => $name ),+ }.to_owned())
            }
        }
    };
}

pub(super) use {choice, data_record, family, record};
