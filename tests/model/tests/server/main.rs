//! The model server, asked over the wire as agent programs ask it.

mod client;
mod protocols;
mod scripts;
