//! The instructions of a compiled function of this program, read from its memory.

#![allow(unsafe_code, reason = "instructions are read as data")]

use super::window::{ListedInstruction, Touch};
use corelay_sync::facade::atomic::AtomicU64;
use iced_x86::{
    Code, Decoder, DecoderError, DecoderOptions, FlowControl, Formatter, Instruction,
    InstructionInfoFactory, IntelFormatter, OpAccess, Register,
};

/// Longest function that is shown, in bytes.
const MAX_BYTES: usize = 256;

/// Reads the instructions of `function`, up to the first that leaves it.
///
/// # Errors
/// A sentence if they cannot be decoded.
pub(super) fn lines_of<R>(function: fn(&AtomicU64) -> R) -> Result<Vec<ListedInstruction>, String> {
    let first = function as *const () as *const u8;
    let mut bytes = Vec::new();
    // Reads one byte after the other, so that no byte outside the function is ever read.
    while bytes.len() < MAX_BYTES {
        let next = first.wrapping_add(bytes.len());
        // SAFETY: the bytes read so far do not leave the function, for `decoded` would have
        // returned them. So this byte belongs to the function, too: code of this program, which
        // Linux on x86-64 maps readable for as long as the program runs, and which nothing
        // writes. Volatile, because it lies in no object that the language knows of.
        bytes.push(unsafe { next.read_volatile() });
        if let Some(lines) = decoded(&bytes)? {
            return Ok(lines);
        }
    }
    Err(format!("the function is longer than {MAX_BYTES} bytes"))
}

/// Decodes `bytes`; returns `None` until the last instruction leaves the function.
///
/// # Errors
/// A sentence if the bytes are no instructions.
fn decoded(bytes: &[u8]) -> Result<Option<Vec<ListedInstruction>>, String> {
    let mut decoder = Decoder::new(64, bytes, DecoderOptions::NONE);
    let mut lines = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        match decoder.last_error() {
            DecoderError::NoMoreBytes => return Ok(None),
            DecoderError::None => {}
            _ => return Err("the bytes of the function are no instructions".to_owned()),
        }
        lines.push(line(&instruction));
        let goes_on = matches!(
            instruction.flow_control(),
            FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::Call
                | FlowControl::IndirectCall
        );
        if !goes_on {
            return Ok(Some(lines));
        }
    }
    Ok(None)
}

fn line(instruction: &Instruction) -> ListedInstruction {
    let mut formatter = IntelFormatter::new();
    let options = formatter.options_mut();
    options.set_space_after_operand_separator(true);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    let mut text = String::new();
    match instruction.flow_control() {
        FlowControl::Next | FlowControl::Return => formatter.format(instruction, &mut text),
        // A jump's target is counted from the function's beginning if it lies within; other
        // addresses mean nothing to the reader.
        _ => {
            formatter.format_mnemonic(instruction, &mut text);
            let target = instruction.near_branch_target();
            match (target as usize) < MAX_BYTES && target != 0 {
                true => text.push_str(&format!(" to +{target}")),
                false => text.push_str(" elsewhere"),
            }
        }
    }
    ListedInstruction {
        offset: instruction.ip() as usize,
        text,
        touch: touch(instruction),
    }
}

fn touch(instruction: &Instruction) -> Touch {
    match instruction.flow_control() {
        FlowControl::Call | FlowControl::IndirectCall => return Touch::Call,
        // A jump out is taken for a call. `ret` reads only the stack.
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => return Touch::Call,
        _ => {}
    }
    let on_stack = |base| matches!(base, Register::RSP | Register::RBP);
    let mut factory = InstructionInfoFactory::new();
    let mut accesses = factory.info(instruction).used_memory().iter();
    let Some(access) = accesses.find(|memory| !on_stack(memory.base())) else {
        return Touch::None;
    };
    // An exchange with memory is atomic even without the prefix.
    let exchanges = matches!(
        instruction.code(),
        Code::Xchg_rm64_r64 | Code::Xchg_rm32_r32
    );
    match access.access() {
        OpAccess::Read | OpAccess::CondRead => Touch::Load,
        OpAccess::Write | OpAccess::CondWrite => Touch::Store,
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => {
            match instruction.has_lock_prefix() || exchanges {
                true => Touch::Atomic,
                false => Touch::Both,
            }
        }
        _ => Touch::None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::race::window::{Window, window};

    /// `mov rax,[rdi]`, `lea rcx,[rax+1]`, `mov [rdi],rcx`, `ret`.
    const THREE: &[u8] = b"\x48\x8b\x07\x48\x8d\x48\x01\x48\x89\x0f\xc3";
    /// `inc qword ptr [rdi]`, `ret`.
    const ONE: &[u8] = b"\x48\xff\x07\xc3";
    /// `mov eax,1`, `lock xadd [rdi],rax`, `ret`.
    const LOCKED: &[u8] = b"\xb8\x01\x00\x00\x00\xf0\x48\x0f\xc1\x07\xc3";
    /// `push rax`, `call $+5`, `mov [rsp],rax`, `pop rcx`, `ret`.
    const CALLS: &[u8] = b"\x50\xe8\x00\x00\x00\x00\x48\x89\x04\x24\x59\xc3";
    /// `xchg [rdi],rax`, `ret`.
    const EXCHANGES: &[u8] = b"\x48\x87\x07\xc3";

    #[test]
    fn the_window_of_each_form_is_found() {
        for (bytes, expected) in [
            (THREE, Window::Between(0, 2)),
            (ONE, Window::Inside(0)),
            (LOCKED, Window::None(1)),
            (EXCHANGES, Window::None(0)),
            (CALLS, Window::Unknown),
            (b"\xc3", Window::Unknown),
            // The store comes before the load, so this is no increment.
            (b"\x48\x89\x0f\x48\x8b\x07\xc3", Window::Unknown),
        ] {
            let lines = decoded(bytes).unwrap().unwrap();
            assert_eq!(window(&lines), expected, "{lines:?}");
        }
        let texts = |bytes| -> Vec<String> {
            let lines = decoded(bytes).unwrap().unwrap();
            lines.into_iter().map(|line| line.text).collect()
        };
        assert_eq!(
            texts(THREE)[1..],
            ["lea rcx, [rax+1]", "mov [rdi], rcx", "ret"]
        );
        // `jb` jumps over the `ret` that follows; `call` goes far away.
        let leads = b"\x72\x01\xe8\x00\x00\x01\x00\xc3";
        assert_eq!(texts(leads), ["jb to +3", "call elsewhere", "ret"]);
    }

    #[test]
    fn decoding_stops_at_the_functions_last_instruction() {
        for bytes in [THREE, ONE, LOCKED, CALLS] {
            for cut in 0..bytes.len() {
                assert_eq!(decoded(&bytes[..cut]), Ok(None), "{bytes:x?} to {cut}");
            }
            // The bytes after the function are not its own.
            let more = [bytes, b"\x90\x90"].concat();
            assert_eq!(decoded(&more), decoded(bytes));
        }
        assert!(decoded(b"\x06\x06").is_err());
    }

    /// The instructions depend on the compiler, but they can be read in every build.
    #[test]
    fn this_programs_own_increments_can_be_read() {
        use crate::race::{atomic, lost};
        for lines in [lines_of(lost::increment), lines_of(atomic::increment)] {
            let lines = lines.unwrap();
            let last = &lines.last().unwrap().text;
            assert!(
                last.starts_with("ret") || last.starts_with("jmp"),
                "{lines:?}"
            );
        }
        // Unoptimised code calls functions to load and store, so its window is unknown.
        if !cfg!(debug_assertions) {
            let of = |lines: Result<Vec<ListedInstruction>, String>| window(&lines.unwrap());
            assert!(!matches!(
                of(lines_of(lost::increment)),
                Window::None(_) | Window::Unknown
            ));
            assert!(matches!(of(lines_of(atomic::increment)), Window::None(_)));
        }
    }
}
