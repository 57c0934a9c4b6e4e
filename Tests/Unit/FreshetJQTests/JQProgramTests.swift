import Testing

@testable import FreshetHelper
@testable import FreshetJQ

@Suite("jq programs: outputs, verdicts, errors and isolation")
struct JQProgramTests {
    func run(
        _ program: String, _ input: String, purpose: HelperRequest.Purpose = .outputs, maxOutput: UInt64 = 1 << 20
    ) throws -> HelperReply {
        try JQProgram(program).run(purpose, over: Array(input.utf8), maxOutput: maxOutput)
    }

    func outputs(_ program: String, _ input: String) throws -> String {
        let reply = try run(program, input)
        try #require(reply.status == .done, "\(String(decoding: reply.bytes, as: UTF8.self))")
        return String(decoding: reply.bytes, as: UTF8.self)
    }

    @Test("outputs are compact JSON, each with a newline, in order")
    func outputs() throws {
        #expect(
            try outputs(".[]", #"[1, "a\u0000\n", {"b": [null, true]}]"#) == "1\n\"a\\u0000\\n\"\n{\"b\":[null,true]}\n"
        )
        #expect(try outputs("empty", "1") == "")
    }

    @Test("a program runs once for each JSON text of the input; without a JSON text it does not run")
    func sequences() throws {
        #expect(try outputs(". + 1", "1 2\n3") == "2\n3\n4\n")
        #expect(try outputs("1", "") == "")
        #expect(try outputs("1", " \n") == "")
    }

    @Test("a program can run several times")
    func again() throws {
        let program = try JQProgram(".a")
        for number in 0..<3 {
            let input = Array("{\"a\":\(number)}".utf8)
            #expect(program.run(.outputs, over: input, maxOutput: 10).bytes == Array("\(number)\n".utf8))
            // Errors and limits do not affect the next run.
            #expect(program.run(.outputs, over: Array("[]".utf8), maxOutput: 10).status == .failed)
            #expect(program.run(.outputs, over: input, maxOutput: 1).status == .outputTooLarge)
        }
    }

    @Test("a text is one string without its byte order mark; text that is not UTF-8 is invalid")
    func texts() throws {
        func run(_ bytes: [UInt8], _ program: String = ".") throws -> HelperReply {
            try JQProgram(program).run(.outputs, over: bytes, isText: true, maxOutput: 1 << 20)
        }
        func text(_ reply: HelperReply) -> String { String(decoding: reply.bytes, as: UTF8.self) }
        #expect(text(try run(Array("a\n\"b\" 1 {\u{0}\u{e9}".utf8))) == "\"a\\n\\\"b\\\" 1 {\\u0000\u{e9}\"\n")
        #expect(text(try run([], "length")) == "0\n")
        #expect(text(try run(Array("\u{FEFF}a\u{FEFF}".utf8), "length")) == "2\n")
        let latin = try run([0x63, 0x61, 0x66, 0xE9, 0x0A])
        #expect(latin.status == .invalidInput)
        #expect(text(latin).contains("text must be UTF-8, but the input is not UTF-8 at byte 4"))
        let program = try JQProgram("[., $a]", variables: ["a"])
        let reply = program.run(
            .outputs, over: Array("1 2".utf8), isText: true, with: variables("{\"a\":3}"), maxOutput: 100)
        #expect(text(reply) == "[\"1 2\",3]\n")
    }

    func variables(_ object: String) -> JQVariables { JQVariables(Array(object.utf8)) }

    @Test("a program is compiled once and gets the values of its variables with each run")
    func namedValues() throws {
        let program = try JQProgram("[$topic.id, $q, .]", variables: ["q", "topic"])
        for number in 0..<3 {
            let given = variables("{\"topic\":{\"id\":\(number)},\"q\":\"jazz\"}")
            #expect(given.names == ["q", "topic"])
            #expect(
                program.run(.outputs, over: Array("1 2".utf8), with: given, maxOutput: 100).bytes
                    == Array("[\(number),\"jazz\",1]\n[\(number),\"jazz\",2]\n".utf8))
        }
        #expect(throws: JQProgram.Invalid.self) { try JQProgram("$other", variables: ["topic"]) }
        // Variables work in programs with definitions, comments and pipes.
        let longer = try JQProgram("def f: $q; f | . # a comment", variables: ["q"])
        #expect(
            longer.run(.outputs, over: Array("1".utf8), with: variables("{\"q\":2}"), maxOutput: 9).bytes == [50, 10])
    }

    @Test("variables that are not a JSON object are ignored", arguments: ["", "[1]", "{", "null"])
    func noVariables(_ text: String) throws {
        #expect(variables(text).names == [])
        let reply = try JQProgram(".").run(.outputs, over: Array("1".utf8), with: variables(text), maxOutput: 9)
        #expect(reply.bytes == [49, 10])
    }

    @Test("values are separate: a string is its content, anything else is JSON")
    func values() throws {
        let reply = try run(".[]", #"["a\nb\u0000", "", {"c": [1]}, null]"#, purpose: .values)
        #expect(reply.values == [Array("a\nb\0".utf8), [], Array(#"{"c":[1]}"#.utf8), Array("null".utf8)])
        #expect(try run("empty", "1", purpose: .values).values == [])
        #expect(try run(".", "\"abc\"", purpose: .values, maxOutput: 7).values == [Array("abc".utf8)])
        #expect(try run(".", "\"abc\"", purpose: .values, maxOutput: 6).status == .outputTooLarge)
    }

    @Test(
        "malformed bytes are not decoded as values",
        arguments: [[1], [1, 0, 0, 0], [2, 0, 0, 0, 9], [255, 255, 255, 255, 0]])
    func noValues(_ bytes: [UInt8]) {
        #expect(HelperReply(.done, bytes: bytes).values == nil)
    }

    @Test(
        "a verdict is that of the last output",
        arguments: [
            ("true", true), ("0", true), ("\"\"", true), ("false", false), ("null", false), ("empty", false),
            ("true, false", false), ("null, 1", true),
        ])
    func verdict(_ program: String, _ expected: Bool) throws {
        let reply = try run(program, "1", purpose: .verdict, maxOutput: 0)
        #expect(reply == HelperReply(.done, verdict: expected))
    }

    @Test("jq 1.6 keeps numbers as doubles: large integers lose their last digits")
    func largeIntegers() throws {
        #expect(try outputs(".", "[9007199254740992,9007199254740993]") == "[9007199254740992,9007199254740992]\n")
        #expect(try outputs(".", "1e1000") == "1.7976931348623157e+308\n")
        #expect(try outputs(".", "123456789012345678") == "123456789012345680\n")
    }

    @Test("the limit on output holds exactly, newlines included")
    func outputLimit() throws {
        #expect(try run(".,.", "\"abc\"", maxOutput: 12).bytes.count == 12)
        #expect(try run(".,.", "\"abc\"", maxOutput: 11) == HelperReply(.outputTooLarge))
        // This program never ends.
        #expect(try run("repeat(.)", "1", maxOutput: 1_000) == HelperReply(.outputTooLarge))
    }

    @Test("the error of a program that does not compile is one line without hints about shells")
    func invalid() {
        #expect(throws: JQProgram.Invalid(message: "syntax error, unexpected $end at <top-level>, line 1: .a |")) {
            try JQProgram(".a |")
        }
        #expect(throws: JQProgram.Invalid(message: "nosuch/1 is not defined at <top-level>, line 1: nosuch(1)")) {
            try JQProgram("nosuch(1)")
        }
        #expect(throws: JQProgram.Invalid.self) { try JQProgram(".a\0") }
    }

    @Test(
        "a program's error is a failure with jq's message",
        arguments: [
            (".a.b", "Cannot index number with string \"b\""), ("error(\"no\")", "no"), ("error({a: 1})", "{\"a\":1}"),
            ("\"bad\" | halt_error", "bad"), ("test(\"[\")", "cannot be matched"),
        ])
    func failed(_ program: String, _ words: String) throws {
        let reply = try run(program, #"{"a":1}"#)
        #expect(reply.status == .failed)
        #expect(String(decoding: reply.bytes, as: UTF8.self).contains(words))
    }

    @Test("halt ends the whole run and keeps the outputs before it")
    func halt() throws {
        #expect(try outputs("., halt", "1 2 3") == "1\n")
    }

    @Test("input in another character set is not JSON, and the error has the position of the first invalid byte")
    func characterSet() throws {
        let program = try JQProgram(".a")
        let latin1 = Array("{\"a\":\"Z".utf8) + [0xFC] + Array("rich\"}".utf8)
        let utf16: [UInt8] = [0xFF, 0xFE] + "{}".utf16.flatMap { [UInt8(truncatingIfNeeded: $0), 0] }
        for (input, byte) in [(latin1, 8), (utf16, 1), (Array("\"a".utf8) + [0xC3], 3)] {
            let reply = program.run(.outputs, over: input, maxOutput: 100)
            #expect(reply.status == .invalidInput)
            #expect(String(decoding: reply.bytes, as: UTF8.self).contains("not UTF-8 at byte \(byte)"))
        }
        #expect(program.run(.outputs, over: Array("{\"a\":\"ü\"}".utf8), maxOutput: 100).status == .done)
    }

    /// libjq 1.6 reads a token up to its NUL only, and a NUL at the end as the number 0.
    @Test(
        "a NUL byte anywhere in JSON is an error with its position",
        arguments: [
            ("{\"ttl\": 1\0\0\0\0}", 10), ("[\"a\"]\0<html>", 6), ("[\"a\"]\0GARBAGE", 6), ("1\0", 2), ("\0", 1),
            ("{\"a\":true\0false}", 10), ("\"a\0b\"", 3), ("{\"a\0\":1}", 4), ("1\n\0\n", 3), ("1 2\03", 4),
        ], [HelperRequest.Purpose.outputs, .verdict, .values])
    func nulBytes(_ input: (String, byte: Int), _ purpose: HelperRequest.Purpose) throws {
        let reply = try JQProgram(".").run(purpose, over: Array(input.0.utf8), maxOutput: 100)
        #expect(reply.status == .invalidInput)
        #expect(String(decoding: reply.bytes, as: UTF8.self).contains("byte \(input.byte) is a NUL character"))
    }

    @Test("an escaped NUL in JSON is a character of a string")
    func escapedNUL() throws {
        #expect(try outputs(".", #"{"a\u0000":"b\u0000"}"#) == #"{"a\u0000":"b\u0000"}"# + "\n")
    }

    @Test("input that is not JSON has its own status", arguments: ["{", "<html>", "[1,]", "{\"a\":1} x", "\"abc"])
    func invalidInput(_ input: String) throws {
        #expect(try run(".", input).status == .invalidInput)
    }

    @Test("a message is truncated at its limit")
    func longMessage() throws {
        let reply = try run("error(\"x\" * 100000)", "1")
        #expect(reply.status == .failed && reply.bytes.count == HelperReply.maxMessage)
    }

    @Test(
        "modules are not allowed, wherever they are",
        arguments: [
            "import \"x\" as x; .", " # comment\n\t include \"x\" {search: \"/tmp\"}; .", "module {name: \"x\"}; .",
            "import \"x\" as $x {search:\"/etc\"}; $x",
        ])
    func modules(_ program: String) {
        let error = #expect(throws: JQProgram.Invalid.self) { try JQProgram(program) }
        #expect(error?.message.contains("is not available") == true)
    }

    @Test(
        "words that only look like module directives are allowed",
        arguments: [".import", "{include: 1}", "[.module]", "def imports: 1; imports"])
    func noModules(_ program: String) throws {
        #expect(JQProgram.moduleDirective(program) == nil)
        _ = try outputs(program, "{}")
    }

    @Test("a program cannot read other input")
    func noInput() throws {
        #expect(try run("input", "1 2").status == .failed)
        #expect(try outputs("[inputs]", "1") == "[]\n")
        #expect(try outputs("input_filename", "1") == "null\n")
        #expect(try run("\"x\" | modulemeta", "1").status == .failed)
    }
}

@Suite("The cache of compiled programs")
struct ProgramCacheTests {
    @Test("an identical program is compiled once; a full cache removes the least recently used program")
    func leastRecentlyUsed() throws {
        var cache = ProgramCache()
        let first = try cache.program(".a")
        for number in 1..<ProgramCache.limit { _ = try cache.program("\(number)") }
        #expect(try cache.program(".a") === first)
        #expect(cache.count == ProgramCache.limit)
        let second = try cache.program("1")
        _ = try cache.program("99")
        #expect(cache.count == ProgramCache.limit)
        #expect(try cache.program(".a") === first)
        #expect(try cache.program("1") === second)
        // "2" was the oldest.
        for number in 3..<ProgramCache.limit { _ = try cache.program("\(number)") }
        #expect(try cache.program(".a") === first)
    }

    @Test("a program that does not compile is not cached")
    func invalid() {
        var cache = ProgramCache()
        #expect(throws: JQProgram.Invalid.self) { _ = try cache.program("|") }
        #expect(cache.count == 0)
    }
}
