import Testing

@testable import FreshetVarlink

@Suite struct FramerTests {
    @Test("messages are split at NUL, however the bytes arrive")
    func splitting() throws {
        let stream = Array("one\0two\0\0three\0".utf8)
        for size in 1...stream.count {
            var framer = VarlinkFramer(limit: 16)
            var messages: [String] = []
            for start in stride(from: 0, to: stream.count, by: size) {
                framer.append(stream[start..<min(start + size, stream.count)])
                while let message = try framer.next() { messages.append(String(decoding: message, as: UTF8.self)) }
            }
            #expect(messages == ["one", "two", "", "three"], "in pieces of \(size)")
            #expect(!framer.isInMessage)
        }
    }

    @Test("a message at the limit passes; one more byte is an error, also before the end of the message")
    func limit() throws {
        var framer = VarlinkFramer(limit: 8)
        framer.append(Array("12345678".utf8))
        #expect(try framer.next() == nil)
        framer.append([0])
        #expect(try framer.next()?.count == 8)
        framer.append(Array("123456789".utf8))
        #expect(throws: VarlinkFramer.MessageTooLong(limit: 8)) { try framer.next() }

        var whole = VarlinkFramer(limit: 8)
        whole.append(Array("123456789\0".utf8))
        #expect(throws: VarlinkFramer.MessageTooLong(limit: 8)) { try whole.next() }
    }

    @Test("the framer reports whether a message is incomplete")
    func inMessage() throws {
        var framer = VarlinkFramer(limit: 8)
        framer.append(Array("a\0b".utf8))
        #expect(try framer.next() == [UInt8(ascii: "a")])
        #expect(try framer.next() == nil)
        #expect(framer.isInMessage)
    }
}

@Suite struct JSONScannerTests {
    private func members(_ text: String) throws -> [String: String] {
        let bytes = Array(text.utf8)
        return Dictionary(
            uniqueKeysWithValues: try JSONScanner.members(of: bytes).map {
                ($0.name, String(decoding: bytes[$0.value], as: UTF8.self))
            })
    }

    @Test("the members of an object are found with their text")
    func membersOfObject() throws {
        let text = #" { "a" : [1, -2.5e+3, {"b": null}] , "c":"x\"y" ,"d":{} , "e":true}  "#
        #expect(
            try members(text) == ["a": #"[1, -2.5e+3, {"b": null}]"#, "c": #""x\"y""#, "d": "{}", "e": "true"])
        #expect(try members("{}").isEmpty)
    }

    @Test("escapes in names and strings are resolved")
    func escapes() throws {
        let bytes = Array(#"{"\u0061\n":"\ud83d\ude00\/\t"}"#.utf8)
        let member = try #require(try JSONScanner.members(of: bytes).first)
        #expect(member.name == "a\n")
        #expect(JSONScanner.string(member.value, of: bytes) == "😀/\t")
    }

    @Test(
        "text that is not a JSON object is rejected",
        arguments: [
            "", "null", "[]", "1", "{", "}", "{}x", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,"a":1}"#, #"{"a":01}"#,
            #"{"a":1.}"#, #"{"a":-}"#, #"{"a":1e}"#, #"{"a":tru}"#, #"{"a":truex}"#, #"{"a":[1,]}"#, #"{'a':1}"#,
            #"{"a":"\x"}"#, #"{"a":"\u12g4"}"#, "{\"a\":\"\n\"}", #"{"a":"b}"#, #"{"a":1 "b":2}"#, #"{"\ud83d":1}"#,
            #"{"a":1,"a":2}"#, #"{a:1}"#, #"{"a":NaN}"#, #"{"a":+1}"#,
        ])
    func refused(_ text: String) {
        #expect(throws: JSONScanner.SyntaxError.self) { try JSONScanner.members(of: Array(text.utf8)) }
    }

    @Test("a name that appears twice is rejected, among few members and among many", arguments: [2, 8, 9, 10, 40])
    func duplicates(count: Int) throws {
        let members = (0..<count).map { "\"m\($0)\":0" }
        #expect(try JSONScanner.members(of: Array("{\(members.joined(separator: ","))}".utf8)).count == count)
        for (first, second) in [(0, count - 1), (count - 2, count - 1), (0, count / 2)] where first != second {
            var some = members
            some[second] = members[first]
            #expect(throws: JSONScanner.SyntaxError.self) {
                try JSONScanner.members(of: Array("{\(some.joined(separator: ","))}".utf8))
            }
        }
    }

    @Test("names that are not UTF-8 are rejected")
    func invalidUTF8() {
        #expect(throws: JSONScanner.SyntaxError.self) {
            try JSONScanner.members(of: [0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D])
        }
    }

    @Test("nesting is accepted up to the limit")
    func depth() throws {
        func nested(_ depth: Int) -> String {
            #"{"a":"# + String(repeating: "[", count: depth - 1) + String(repeating: "]", count: depth - 1) + "}"
        }
        #expect(try members(nested(JSONScanner.depthLimit)).count == 1)
        #expect(throws: JSONScanner.SyntaxError.self) { try members(nested(JSONScanner.depthLimit + 1)) }
    }
}

@Suite struct MessageTests {
    private func call(_ text: String) throws -> VarlinkCallMessage { try VarlinkCallMessage(parsing: Array(text.utf8)) }

    @Test("a call is parsed with its flags, also with flags that are false")
    func readsCall() throws {
        let message = try call(#"{"method":"a.B","parameters":{"x":1},"more":false,"oneway":true}"#)
        #expect(message.method == "a.B")
        #expect(String(decoding: message.parameters.json, as: UTF8.self) == #"{"x":1}"#)
        #expect(!message.more && message.oneway && !message.upgrade)
        #expect(try call(#"{"method":"a.B","parameters":null}"#).parameters == .none)
    }

    @Test(
        "a parameter that occurs twice, or in which a name occurs twice, is an error of this parameter",
        arguments: [
            #"{"x":1,"x":2}"#, #"{"a":1,"x":{"b":1,"c":[],"b":2}}"#, #"{"x":[1,{"b":1},{"b":{"c":1,"c":1}}]}"#,
            #"{"x":1,"\u0078":2}"#, #"{"a":"{\"x\":","x":"\\","x":3}"#, #"{"x" : 1 , "x" : 1}"#,
        ])
    func duplicateParameters(parameters: String) {
        #expect(throws: VarlinkMessageError.field("x")) { try call(#"{"method":"a.B","parameters":\#(parameters)}"#) }
    }

    @Test(
        "names that occur in different objects, or as values, are accepted",
        arguments: [
            #"{"x":{"x":"x","y":["x","x"]},"y":[{"x":1},{"x":1}]}"#, #"{"a":"\"","b":"\"","c":"a"}"#, "{ }",
        ])
    func noDuplicateParameters(parameters: String) throws {
        let message = try call(#"{"method":"a.B","parameters":\#(parameters)}"#)
        #expect(String(decoding: message.parameters.json, as: UTF8.self) == parameters)
    }

    @Test("oneway together with more or upgrade is a syntax error")
    func contradiction() {
        for flag in ["more", "upgrade"] {
            #expect(throws: VarlinkMessageError.syntax) { try call(#"{"method":"a.B","\#(flag)":true,"oneway":true}"#) }
        }
    }

    @Test("the error of an invalid call names the invalid member")
    func wrongCall() {
        #expect(throws: VarlinkMessageError.field("parametres")) {
            try call(#"{"method":"a.B","parametres":{}}"#)
        }
        #expect(throws: VarlinkMessageError.field("method")) { try call("{}") }
        #expect(throws: VarlinkMessageError.field("method")) { try call(#"{"method":1}"#) }
        #expect(throws: VarlinkMessageError.field("more")) { try call(#"{"method":"a.B","more":1}"#) }
        #expect(throws: VarlinkMessageError.field("parameters")) { try call(#"{"method":"a.B","parameters":[]}"#) }
        #expect(throws: VarlinkMessageError.syntax) { try call("hello") }
    }

    @Test("encoding leaves out absent members, except for parameters")
    func writes() {
        #expect(VarlinkCallMessage(method: "a.B").encoded == Array(#"{"method":"a.B","parameters":{}}"#.utf8) + [0])
        #expect(VarlinkReplyMessage().encoded == Array(#"{"parameters":{}}"#.utf8) + [0])
        #expect(
            VarlinkReplyMessage(continues: true).encoded
                == Array(#"{"parameters":{},"continues":true}"#.utf8) + [0])
        #expect(
            VarlinkReplyMessage(error: "a.E").encoded == Array(#"{"error":"a.E","parameters":{}}"#.utf8) + [0])
    }

    @Test("encoded messages parse to equal messages")
    func roundTrip() throws {
        let message = VarlinkCallMessage(
            method: "a.\"\\\u{1}", parameters: VarlinkParameters(json: Array(#"{"ä":"ö"}"#.utf8)), more: true,
            upgrade: true)
        #expect(try VarlinkCallMessage(parsing: message.encoded.dropLast()) == message)
        let oneway = VarlinkCallMessage(method: "a.B", oneway: true)
        #expect(try VarlinkCallMessage(parsing: oneway.encoded.dropLast()) == oneway)
        let reply = VarlinkReplyMessage(continues: true, error: "a.E")
        #expect(try VarlinkReplyMessage(parsing: reply.encoded.dropLast()) == reply)
    }

    @Test("the error of an invalid parameter names its outermost member")
    func invalidParameter() throws {
        struct Inner: Codable { var number: Int }
        struct Outer: Codable { var inner: [Inner] }
        let parameters = VarlinkParameters(json: Array(#"{"inner":[{"number":"x"}]}"#.utf8))
        #expect(throws: VarlinkErrorReply.invalidParameter("inner")) { try parameters.decode(as: Outer.self) }
        #expect(throws: VarlinkErrorReply.invalidParameter("text")) {
            try VarlinkParameters.none.decode(as: Text.self)
        }
    }

    @Test("a single text is read without decoding a type, and anything else is named in the error")
    func singleText() throws {
        let parameters = VarlinkParameters(json: Array(#"{"a":"x\u00e4\n","b":1,"c":null}"#.utf8))
        #expect(try parameters.string("a") == "x\u{e4}\n")
        for name in ["b", "c", "d"] {
            #expect(throws: VarlinkErrorReply.invalidParameter(name)) { try parameters.string(name) }
        }
        #expect(throws: VarlinkErrorReply.invalidParameter("name")) { try VarlinkParameters.none.string("name") }
    }

    @Test("integers keep all their digits")
    func integers() throws {
        let parameters = try VarlinkParameters(encoding: Number(number: 9_007_199_254_740_993))
        #expect(String(decoding: parameters.json, as: UTF8.self) == #"{"number":9007199254740993}"#)
        #expect(try parameters.decode(as: Number.self).number == 9_007_199_254_740_993)
    }

    @Test("parameters must be an object")
    func notAnObject() {
        #expect(throws: EncodingError.self) { try VarlinkParameters(encoding: [1, 2]) }
    }
}
