//! Real chats for Cupel: provider messages as items and back, groups, token counting.
