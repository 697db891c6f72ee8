//! Pictures of a real Xvnc and the X side of it.

mod screen;
mod typing;
mod x11;
mod xvnc;
