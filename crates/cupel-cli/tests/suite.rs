//! All tests of the command, one binary. They run it as a user does.

mod agreement;
mod bad_input;
mod batch;
mod chats;
mod commands;
mod completions;
mod config;
mod conform;
mod docs;
mod eval;
mod evidence;
mod files;
mod invisible;
mod layouts;
mod sandbox;
mod schema;
mod search;
mod streams;
mod terminal;
mod trimming;
mod version;
