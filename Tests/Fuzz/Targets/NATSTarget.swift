@testable import FreshetNATS

extension FuzzTarget {
    /// What a NATS server sends, with the headers of messages.
    static let natsParser = FuzzTarget(
        "nats-parser",
        shapes: [
            CostShape("many operations", unit: "PING\r\n"),
            CostShape("many messages", unit: "MSG a.b 2 3\r\nabc\r\n"),
            CostShape("many messages with headers", unit: "HMSG a 2 _INBOX.x.1 18 19\r\nNATS/1.0\r\nA: b\r\n\r\nc\r\n"),
            CostShape("a payload", before: "MSG a 2 60000\r\n", unit: "a"),
            CostShape("header fields", before: "HMSG a 2 60000 60000\r\nNATS/1.0\r\n", unit: "A: b\r\n"),
            CostShape("a header value", before: "HMSG a 2 60000 60000\r\nNATS/1.0\r\nA:", unit: " "),
            CostShape("a line without an end", before: "MSG ", unit: "a", upTo: 4_096),
            CostShape("arguments", before: "MSG", unit: " a", after: "\r\n", upTo: 4_096),
            CostShape("members of INFO", before: "INFO {\"z\":0", unit: ",\"a\":1", after: "}\r\n"),
            CostShape("other servers", before: "INFO {\"connect_urls\":[0", unit: ",\"a:1\"", after: "]}\r\n"),
            CostShape("nesting in INFO", before: "INFO ", unit: "["),
            CostShape(
                "combining characters in a name of INFO", before: "INFO {\"a", unit: "\u{301}\u{323}",
                after: "\":1}\r\n"),
            CostShape(
                "combining characters in a value of INFO", before: "INFO {\"version\":\"a", unit: "\u{301}\u{323}",
                after: "\"}\r\n"),
            CostShape("errors", unit: "-ERR 'a\u{301}'\r\n"),
            CostShape("a long error", before: "-ERR '", unit: "\u{301}\u{323}", after: "'\r\n", upTo: 4_096),
        ],
        read: { input in
            // As a whole, and in small pieces.
            for step in [input.count, 7] {
                var parser = NATSParser()
                var rest = input[...]
                do throws(NATSParser.Violation) {
                    while !rest.isEmpty {
                        parser.append(rest.prefix(step))
                        rest = rest.dropFirst(max(1, step))
                        while let operation = try parser.next() { keep(operation) }
                    }
                } catch {
                    keep(error)
                }
            }
            keep(NATSHeaders(block: input[...]))
        },
        check: { input throws(FuzzViolation) in
            // The first byte is the length of the pieces.
            let step = Int(input.first ?? 0) + 1
            let whole = try operations(of: input.dropFirst(), step: input.count)
            let pieces = try operations(of: input.dropFirst(), step: step)
            try hold("the pieces of a stream do not matter", whole == pieces)
            for operation in whole.operations { try checkOperation(operation) }
            if let headers = NATSHeaders(block: input[...]) { try checkHeaders(headers) }
        })

    private static let natsLimits = {
        var limits = NATSParser.Limits()
        (limits.line, limits.info, limits.headers, limits.payload, limits.skipped) = (128, 512, 256, 128, 1_024)
        return limits
    }()

    private struct NATSResult: Equatable {
        var operations: [ServerOperation] = []
        var violation: NATSParser.Violation?
    }

    private static func operations(
        of input: ArraySlice<UInt8>, step: Int
    ) throws(FuzzViolation) -> NATSResult {
        var parser = NATSParser(limits: natsLimits)
        var result = NATSResult()
        var rest = input
        while !rest.isEmpty {
            parser.append(rest.prefix(step))
            rest = rest.dropFirst(step)
            do throws(NATSParser.Violation) {
                while let operation = try parser.next() { result.operations.append(operation) }
            } catch {
                result.violation = error
                return result
            }
            // An INFO line, or headers and payload with the line end.
            try hold("the stored bytes have a limit", parser.bufferedBytes <= 512)
        }
        return result
    }

    private static func checkOperation(_ operation: ServerOperation) throws(FuzzViolation) {
        switch operation {
        case .message(let message, let number):
            try hold("a payload is not longer than its limit", message.payload.count <= natsLimits.payload)
            try checkHeaders(message.headers)
            guard message.headers.isEmpty else { return }
            let line =
                "MSG \(message.subject) \(number) \(message.reply.map { "\($0) " } ?? "")\(message.payload.count)"
            var parser = NATSParser()
            parser.append(Array("\(line)\r\n".utf8) + message.payload + Array("\r\n".utf8))
            let again = try? parser.next()
            try hold("a message that is written again is the same", again == operation)
        case .error(let text):
            try hold(
                "an error is shown without control characters",
                Text.escaped(text).unicodeScalars.allSatisfy { $0.properties.generalCategory != .control })
        case .info(let info):
            try hold("a text of INFO has a limit", info.version.utf8.count <= 512 && info.maxPayload >= 0)
        case .unusable, .ping, .pong, .ok: break
        }
    }

    private static func checkHeaders(_ headers: NATSHeaders) throws(FuzzViolation) {
        try hold("the fields have a limit", headers.fields.count <= NATSHeaders.mostFields)
        var copy = NATSHeaders()
        for field in headers.fields {
            let isAllowed = (try? copy.append(field.name, field.value)) != nil
            try hold("a field that was read can be written", isAllowed)
        }
        guard !headers.fields.isEmpty else { return }
        let again = NATSHeaders(block: headers.block[...])
        try hold("headers that are written again are the same", again == copy)
    }
}
