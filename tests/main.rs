//! What Handover promises, proven on the real program: every test starts real hosts, displays and
//! clients in directories of its own. One file a promise.

mod support;

mod a_real_browser;
mod a_real_viewer;
mod agents_are_found;
mod agents_are_told_apart;
mod agents_ask_before_they_act;
mod agents_end_with_their_host;
mod agents_from_the_shell;
mod agents_hear_of_takeovers;
mod agents_of_agents;
mod agents_speak_mcp;
mod attached_desktops;
mod bounds;
mod browser_desktops;
mod browser_tools;
mod clients_die;
mod clipboard;
mod command_line;
mod controller_ends;
mod damaged_state;
mod discovery;
mod display_ends;
mod drain;
mod embedded;
mod full_disk;
mod hand_back;
mod host_ends;
mod in_a_container;
mod lease;
mod many_desktops;
mod nothing_stays_pressed;
mod one_gate;
mod one_host;
mod only_one_side_acts;
mod people_type;
mod pi;
mod pictures;
mod pointer;
mod relayed_tools;
mod text;
mod the_record;
mod watchers;
mod who_may;
mod wire_limits;
