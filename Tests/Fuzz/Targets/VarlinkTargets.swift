import FoundationEssentials

@testable import FreshetVarlink

extension FuzzTarget {
    /// The scanner of JSON texts. The reference is Foundation's decoder.
    static let varlinkJSON = FuzzTarget(
        "varlink-json",
        shapes: [
            CostShape("members", before: "{\"z\":0", unit: ",\"a\":1", after: "}"),
            CostShape("elements", before: "[0", unit: ",1", after: "]"),
            CostShape("objects", before: "[0", unit: ",{\"id\":1}", after: "]"),
            CostShape("a string", before: "[\"", unit: "a", after: "\"]"),
            CostShape("escapes", before: "{\"", unit: "\\u00e4", after: "\":1}"),
            CostShape("pairs of surrogates", before: "{\"", unit: "\\ud83d\\ude00", after: "\":1}"),
            CostShape("space", before: "{", unit: " ", after: "}"),
            CostShape("digits", before: "[", unit: "9", after: "]"),
            CostShape("nesting", unit: "["),
            CostShape(
                "combining characters in a name of an element", before: "[{\"i", unit: "\u{301}\u{323}", after: "\":1}]"
            ),
            CostShape("escaped combining characters", before: "[{\"i", unit: "\\u0301\\u0323", after: "\":1}]"),
        ],
        read: { input in
            keep(try? JSONScanner.members(of: input))
            guard let elements = try? JSONScanner.elements(of: input) else { return }
            for element in elements { keep(try? JSONScanner.value(at: ["id"], in: element, of: input)) }
        },
        check: { input throws(FuzzViolation) in
            if let members = try? JSONScanner.members(of: input) {
                try hold("what the scanner takes is JSON for others", isJSON(input))
                try hold("no name comes twice", Set(members.map(\.name)).count == members.count)
                var end = 0
                for member in members {
                    try hold("members follow each other", member.value.lowerBound >= end && !member.value.isEmpty)
                    end = member.value.upperBound
                    let value = JSONScanner.compact(member.value, of: input)
                    try hold("compact text is not longer", value.count <= member.value.count)
                    let again = try? JSONScanner.members(of: Array("{\"a\":".utf8) + value + Array("}".utf8))
                    try hold("compact text is one value", again?.count == 1)
                }
                try hold("members end in the text", end <= input.count)
            }
            guard let elements = try? JSONScanner.elements(of: input) else { return }
            try hold("what the scanner takes is JSON for others", isJSON(input))
            for element in elements {
                guard let place = try? JSONScanner.value(at: ["id"], in: element, of: input) else { continue }
                try hold(
                    "a member is in its object",
                    element.contains(place.lowerBound) && place.upperBound < element.upperBound)
            }
        })

    /// Calls, replies, and the framing between them.
    static let varlinkMessages = FuzzTarget(
        "varlink-messages",
        shapes: [
            CostShape("many messages", unit: "{\"method\":\"a.B\"}\0"),
            CostShape("a long method", before: "{\"method\":\"", unit: "a", after: "\"}\0"),
            CostShape("many members", before: "{\"method\":\"a.B\"", unit: ",\"x\":1", after: "}\0"),
            CostShape("parameters", before: "{\"method\":\"a.B\",\"parameters\":{\"a\":[0", unit: ",1", after: "]}}\0"),
            CostShape(
                "objects in parameters", before: "{\"method\":\"a.B\",\"parameters\":{\"a\":[0",
                unit: ",{\"id\":\"\\u00e4\"}", after: "]}}\0"),
            CostShape("open objects in parameters", before: "{\"method\":\"a.B\",\"parameters\":", unit: "{\"a\":"),
            CostShape(
                "combining characters", before: "{\"method\":\"a.B\",\"a", unit: "\u{301}\u{323}", after: "\":1}\0"),
            CostShape(
                "escaped combining characters", before: "{\"a", unit: "\\u0301\\u0323",
                after: "\":1,\"method\":\"a.B\"}\0"),
            CostShape("no end", unit: "{"),
        ],
        read: { input in
            var framer = VarlinkFramer(limit: 256 << 10)
            framer.append(input)
            while let message = try? framer.next() {
                keep(try? VarlinkCallMessage(parsing: message))
                keep(try? VarlinkReplyMessage(parsing: message))
            }
        },
        check: { input throws(FuzzViolation) in
            try checkFraming(input)
            for message in input.split(separator: 0) {
                let message = Array(message)
                if let call = try? VarlinkCallMessage(parsing: message) {
                    try hold("a call is JSON for others", isJSON(message))
                    try hold("a call has a method", !call.method.isEmpty)
                    let again = try? VarlinkCallMessage(parsing: call.encoded.dropLast())
                    try hold("a call that is written again is the same", again == call)
                    // Reading any parameter gives a value or an error.
                    keep(call.parameters.has("a"))
                    keep(try? call.parameters.decode(as: Anything.self))
                }
                if let reply = try? VarlinkReplyMessage(parsing: message) {
                    let again = try? VarlinkReplyMessage(parsing: reply.encoded.dropLast())
                    try hold("a reply that is written again is the same", again == reply)
                }
            }
        })

    /// The first byte is the length of the pieces of the stream.
    private static func checkFraming(_ input: [UInt8]) throws(FuzzViolation) {
        let limit = 128
        let expected = input.split(separator: 0, omittingEmptySubsequences: false).map(Array.init)
        var framer = VarlinkFramer(limit: limit)
        var found: [[UInt8]] = []
        var rest = input[...]
        let step = Int(input.first ?? 0) + 1
        do throws(VarlinkFramer.MessageTooLong) {
            while !rest.isEmpty {
                framer.append(rest.prefix(step))
                rest = rest.dropFirst(step)
                while let message = try framer.next() { found.append(message) }
            }
        } catch {
            try hold("only a message that is too long is rejected", expected.contains { $0.count > limit })
        }
        try hold("messages are not longer than the limit", found.allSatisfy { $0.count <= limit })
        try hold("messages come as they are, in their order", Array(expected.prefix(found.count)) == found)
        if expected.allSatisfy({ $0.count <= limit }) {
            try hold("all messages come", found.count == expected.count - 1)
            try hold("a rest is noticed", framer.isInMessage == (expected.last?.isEmpty == false))
        }
    }

    /// Any JSON value.
    private struct Anything: Decodable {
        init(from decoder: any Decoder) {}
    }

    /// Whether Foundation reads the text as JSON.
    static func isJSON(_ text: [UInt8]) -> Bool {
        (try? JSONDecoder().decode(Anything.self, from: Data(text))) != nil
    }
}
