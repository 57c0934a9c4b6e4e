@testable import FreshetHelper

extension FuzzTarget {
    /// Replies of a jq helper, in pieces, and requests to it. The first byte is the length of the pieces.
    static let jqReply = FuzzTarget(
        "jq-reply",
        shapes: [
            CostShape("pieces of one byte", before: "\0FJR\u{2}\0\0\0\0\0\0\u{1}\0\0\0\0\0", unit: "a"),
            CostShape("one piece", before: "\u{7F}FJR\u{2}\0\0\0\0\0\0\u{1}\0\0\0\0\0", unit: "a"),
            CostShape("values", before: "\0", unit: "\u{1}\0\0\0a"),
        ],
        read: { input in
            keep(reply(input))
            keep(HelperReply(.done, bytes: Array(input.dropFirst())).values)
        },
        check: { input throws(FuzzViolation) in
            let body = Array(input.dropFirst())
            let pieces = reply(input)
            var decoder = HelperReply.Decoder(maxOutput: maxOutput)
            let whole = try? decoder.take(body)
            if let whole {
                try hold("a reply in pieces is the same as in one", pieces == whole)
                try hold("a reply has its longest length", whole.bytes.count <= maxOutput)
                var again = HelperReply.Decoder(maxOutput: maxOutput)
                try hold(
                    "a reply that is written again is the same", (try? again.take(whole.head + whole.bytes)) == whole)
            }
            let values = HelperReply(.done, bytes: body).values
            if let values {
                var written: [UInt8] = []
                for value in values {
                    written.appendNumber(UInt32(value.count))
                    written += value
                }
                try hold("values that are written again are the same", written == body)
            }
            if let header = HelperRequest.Header(Array(body.prefix(HelperRequest.Header.size))) {
                try hold("a request has its longest program", header.program <= HelperRequest.maxProgram)
                try hold("a request has its longest input", header.input <= HelperRequest.maxInput)
                try hold("a request has its longest variables", header.variables <= HelperRequest.maxVariables)
            }
        })

    private static let maxOutput: UInt64 = 1 << 20

    /// Nil if it is invalid or incomplete.
    private static func reply(_ input: [UInt8]) -> HelperReply? {
        var decoder = HelperReply.Decoder(maxOutput: maxOutput)
        let step = Int(input.first ?? 0) % 128 + 1
        var rest = input.dropFirst()
        var reply: HelperReply?
        while !rest.isEmpty {
            do throws(HelperReply.Decoder.InvalidReply) {
                reply = try decoder.take(rest.prefix(step))
            } catch {
                return nil
            }
            rest = rest.dropFirst(step)
        }
        return reply
    }
}
