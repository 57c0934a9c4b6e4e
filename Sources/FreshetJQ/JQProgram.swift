import CJQ
import FreshetHelper
import Glibc

/// A compiled jq program, which owns libjq's state. Not `Sendable`; one run at a time.
final class JQProgram {
    /// Why a program is invalid, with jq's message.
    struct Invalid: Error, Hashable {
        var message: String
    }

    private let state: OpaquePointer
    private let errors: ErrorLog

    /// Compiles a program in about 13 ms, most of it for jq's own library.
    ///
    /// Modules are not allowed: `import`, `include` and `module` could read any file.
    ///
    /// - Parameter variables: names that the program uses as `$name`. Each run supplies the values, so that a program
    ///   is compiled only once.
    init(_ text: String, variables: [String] = []) throws(Invalid) {
        guard !text.utf8.contains(0) else { throw Invalid(message: "it contains a NUL character") }
        if let word = Self.moduleDirective(text) {
            throw Invalid(message: "'\(word)' is not available: programs cannot read other files")
        }
        guard let state = jq_init() else { throw Invalid(message: "out of memory") }
        self.state = state
        errors = ErrorLog()
        // jq_init of 1.6 does not initialize the two callbacks: `input` would call a random address.
        jq_set_input_cb(state, nil, nil)
        jq_set_debug_cb(state, nil, nil)
        jq_set_error_cb(
            state,
            { log, message in
                guard let log else { return jv_free(message) }
                // The program owns its log, and libjq calls this only while it compiles or runs the program.
                Unmanaged<ErrorLog>.fromOpaque(log).takeUnretainedValue().add(JQValue(jq_format_error(message)).text)
            }, Unmanaged.passUnretained(errors).toOpaque())
        let bound = JQVariables.binding(variables) + text
        guard jq_compile_args(state, bound, jv_object()) != 0 else { throw Invalid(message: errors.summary) }
    }

    deinit {
        var state: OpaquePointer? = state
        jq_teardown(&state)
    }

    /// Runs the program for each JSON text of the input, in order. If the input is a text, the program runs once, with
    /// the text as one string. ``JQHelper`` describes how large numbers are rounded.
    func run(
        _ purpose: HelperRequest.Purpose, over input: [UInt8], isText: Bool = false,
        with variables: borrowing JQVariables = JQVariables(),
        maxOutput: UInt64
    ) -> HelperReply {
        // libjq would silently replace invalid bytes by U+FFFD.
        if let error = Self.encodingError(in: input, isText: isText) { return .message(.invalidInput, error) }
        if isText { return run(purpose, overText: input, with: variables, maxOutput: maxOutput) }
        if let error = Self.nulError(in: input) { return .message(.invalidInput, error) }
        guard let parser = jv_parser_new(0) else { return .message(.failed, "out of memory") }
        defer { jv_parser_free(parser) }
        return input.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { text in
                jv_parser_set_buf(parser, text.baseAddress, Int32(text.count), 0)
                var outputs = Outputs(purpose: purpose, limit: maxOutput)
                while true {
                    let value = JQValue(jv_parser_next(parser))
                    if let error = value.error { return .message(.invalidInput, error) }
                    guard value.isValid else { return outputs.reply }
                    jq_start(state, variables.bound(to: value), 0)
                    switch takeOutputs(&outputs) {
                    case .next: break
                    case .halted: return outputs.reply
                    case .ended(let reply): return reply
                    }
                }
            }
        }
    }

    private func run(
        _ purpose: HelperRequest.Purpose, overText input: [UInt8], with variables: borrowing JQVariables,
        maxOutput: UInt64
    ) -> HelperReply {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        let value = JQValue(text: input.starts(with: mark) ? input.dropFirst(mark.count) : input[...])
        var outputs = Outputs(purpose: purpose, limit: maxOutput)
        jq_start(state, variables.bound(to: value), 0)
        if case .ended(let reply) = takeOutputs(&outputs) { return reply }
        return outputs.reply
    }

    /// Why the input is invalid: it must be UTF-8, as JSON must (RFC 8259, 8.1). Nil if it is UTF-8.
    private static func encodingError(in input: [UInt8], isText: Bool) -> String? {
        do throws(UTF8.ValidationError) {
            _ = try UTF8Span(validating: input.span)
            return nil
        } catch {
            return "\(isText ? "text" : "JSON") must be UTF-8, but the input is not UTF-8 at byte "
                + "\(error.byteOffsets.lowerBound + 1); perhaps it is in another character set, or truncated"
        }
    }

    /// Why JSON input with a NUL byte is invalid; nil if the input has no NUL byte.
    ///
    /// JSON does not allow NUL bytes (RFC 8259, sections 2 and 7). libjq 1.6 handles tokens as C strings: it ignores
    /// the rest of a token after a NUL, and reads a NUL at the end as the number 0.
    static func nulError(in input: [UInt8]) -> String? {
        let offset = input.withUnsafeBytes { bytes -> Int? in
            guard let start = bytes.baseAddress, let nul = memchr(start, 0, bytes.count) else { return nil }
            return UnsafeRawPointer(nul) - start
        }
        return offset.map { "byte \($0 + 1) is a NUL character, which JSON does not allow" }
    }

    private struct Outputs {
        let purpose: HelperRequest.Purpose
        let limit: UInt64
        var bytes: [UInt8] = []
        var verdict = false

        /// Adds an output. Returns false if that would exceed the limit.
        mutating func take(_ value: borrowing JQValue) -> Bool {
            verdict = value.isTruthy
            switch purpose {
            case .outputs: return value.dump(to: &bytes, limit: limit)
            case .verdict, .template: return true
            case .values: return value.content(to: &bytes, limit: limit)
            case .form: return true  // not reached: such a request does not run a program
            }
        }

        var reply: HelperReply { HelperReply(.done, verdict: verdict, bytes: bytes) }
    }

    private enum End {
        case next
        /// `halt` was called: the rest of the input is not read.
        case halted
        case ended(HelperReply)
    }

    private func takeOutputs(_ outputs: inout Outputs) -> End {
        while true {
            let value = JQValue(jq_next(state))
            if let error = value.error { return .ended(.message(.failed, error)) }
            guard value.isValid else { break }
            guard outputs.take(value) else { return .ended(HelperReply(.outputTooLarge)) }
        }
        guard jq_halted(state) != 0 else { return .next }
        // `halt` sets no exit code; `halt_error` sets an exit code and perhaps a message.
        let code = JQValue(jq_get_exit_code(state))
        let message = JQValue(jq_get_error_message(state))
        guard code.isValid else { return .halted }
        return .ended(.message(.failed, message.isValid ? message.text : "halt_error"))
    }

    /// The module directive at the beginning of a program; nil if there is no directive. jq's grammar allows directives
    /// only at the beginning.
    static func moduleDirective(_ text: String) -> String? {
        var rest = text.unicodeScalars[...]
        while let first = rest.first {
            if first == "#" {
                rest = rest.drop { $0 != "\n" }
            } else if first.properties.isWhitespace {
                rest.removeFirst()
            } else {
                break
            }
        }
        let word = rest.prefix {
            ("a"..."z").contains($0) || ("A"..."Z").contains($0) || ("0"..."9").contains($0) || $0 == "_"
        }
        return ["import", "include", "module"].first { $0.unicodeScalars.elementsEqual(word) }
    }
}

/// The errors that libjq reports while it compiles a program.
private final class ErrorLog {
    /// The number of errors that are kept: the first errors are the useful ones.
    static let limit = 8
    private var messages: [String] = []

    func add(_ message: String) {
        guard messages.count < Self.limit else { return }
        messages.append(message)
    }

    /// The messages in one line, without jq's prefix, its hint about shell quoting and its count of errors.
    var summary: String {
        let prefix: [Substring] = ["jq:", "error:"]
        let hint: [Substring] = ["(Unix", "shell", "quoting", "issues?)"]
        let lines = messages.compactMap { message -> String? in
            guard !message.hasSuffix("compile error"), !message.hasSuffix("compile errors") else { return nil }
            var words = message.split(whereSeparator: \.isWhitespace)
            if words.starts(with: prefix) { words.removeFirst(prefix.count) }
            if let start = words.indices.first(where: { words[$0...].starts(with: hint) }) {
                words.removeSubrange(start..<(start + hint.count))
            }
            return words.joined(separator: " ")
        }
        return lines.isEmpty ? "it does not compile" : lines.joined(separator: "; ")
    }
}

/// A cache of compiled programs, so that identical programs are compiled once. When the cache is full, it removes the
/// least recently used program.
struct ProgramCache: ~Copyable {
    /// The most programs. It is small, because a helper lives only for seconds and serves the pipelines that run then.
    static let limit = 16

    /// In order of use: the most recently used program is the last one.
    private var entries: [(text: String, variables: [String], program: JQProgram)] = []

    var count: Int { entries.count }

    mutating func program(_ text: String, variables: [String] = []) throws(JQProgram.Invalid) -> JQProgram {
        if let index = entries.firstIndex(where: { $0.text.utf8.elementsEqual(text.utf8) && $0.variables == variables })
        {
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.program
        }
        let program = try JQProgram(text, variables: variables)
        if entries.count == Self.limit { entries.removeFirst() }
        entries.append((text, variables, program))
        return program
    }
}
