import FreshetVarlink

/// The operations of a client, as bytes. All arguments are valid by their types, so none of them can end a line.
enum ClientOperation {
    /// The arguments of CONNECT.
    struct Connect: Hashable {
        /// The name of the client in the server's reports.
        var name: String
        /// The version of this library.
        var version: String
        /// The public key and the signature of the nonce (Base64 for URLs); nil: no credential.
        var proof: (publicKey: String, signature: String)?
        var usesTLS: Bool

        static func == (left: Connect, right: Connect) -> Bool { left.line == right.line }
        func hash(into hasher: inout Hasher) { hasher.combine(line) }

        /// The operation.
        ///
        /// - `verbose: false`: the server sends no `+OK`.
        /// - `no_responders: true`: the server answers a request to which nothing subscribes with the status 503.
        /// - `echo: false` is not set: a client receives its own messages, as any other subscriber.
        var line: [UInt8] {
            var bytes = Array("CONNECT {\"verbose\":false,\"pedantic\":false,\"protocol\":1,\"headers\":true".utf8)
            bytes += ",\"no_responders\":true,\"lang\":\"swift\",\"tls_required\":\(usesTLS)".utf8
            for (name, value) in [
                ("name", name), ("version", version), ("nkey", proof?.publicKey), ("sig", proof?.signature),
            ] {
                guard let value else { continue }
                bytes += ",\"\(name)\":".utf8
                bytes.append(jsonString: value)
            }
            bytes += "}\r\n".utf8
            return bytes
        }
    }

    static let ping = Array("PING\r\n".utf8)
    static let pong = Array("PONG\r\n".utf8)

    /// The first line of PUB or HPUB.
    static func publish(
        _ subject: NATSSubject, reply: NATSSubject?, headerBytes: Int, payloadBytes: Int
    ) -> String {
        let subjects = reply.map { "\(subject) \($0)" } ?? subject.description
        return headerBytes == 0
            ? "PUB \(subjects) \(payloadBytes)\r\n"
            : "HPUB \(subjects) \(headerBytes) \(headerBytes + payloadBytes)\r\n"
    }

    static func subscribe(_ pattern: NATSSubjectPattern, number: UInt64) -> [UInt8] {
        Array("SUB \(pattern) \(number)\r\n".utf8)
    }

    static func unsubscribe(number: UInt64) -> [UInt8] { Array("UNSUB \(number)\r\n".utf8) }
}
