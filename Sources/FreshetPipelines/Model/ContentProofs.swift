/// The list of sums that lies beside a content: one of them has to be the content's own.
package struct ChecksumRule: Hashable, Sendable {
    /// Where the list is. Its URL may have places for parameters; header fields it gets from the source.
    package var list: HTTPSource
    /// The file that the list calls the content; nil: as the source's URL does.
    package var name: String?

    /// The longest list, in bytes: some ten thousand files.
    package static let listLimit: UInt64 = 1 << 20

    package init(list: HTTPSource, name: String? = nil) {
        self.list = list
        self.name = name
    }
}

/// The signature that lies beside a content, and the key that has to have made it.
package struct SignatureRule: Hashable, Sendable {
    package enum Key: Hashable, Sendable {
        case key(MinisignKey)
        /// The absolute path of a file as minisign(1) writes it, which is read with each check.
        case file(String)
    }

    package var key: Key
    /// Where the signature is; nil: the source's URL with ``suffix`` after its path.
    package var signature: HTTPSource?

    /// What minisign(1) itself adds to a file's name.
    package static let suffix = ".minisig"
    /// The longest file of a signature, in bytes: minisign(1) takes 8,192 of a trusted comment.
    package static let signatureLimit: UInt64 = 16 << 10
    /// The longest content, in bytes, that a signature of the old kind is taken for: unlike the present one it is made of
    /// the whole, which has to be in memory for it.
    package static let wholeLimit = 64 << 20

    package init(_ key: Key, signature: HTTPSource? = nil) {
        self.key = key
        self.signature = signature
    }
}

/// A program that looks at what would become the copy.
package struct InspectionRule: Hashable, Sendable {
    /// An absolute path and arguments; there is no shell.
    package var command: [String]
    /// How long it may take.
    package var timeout: Duration

    /// Where none is configured.
    package static let defaultTimeout: Duration = .seconds(30)
    /// What may be configured.
    package static let timeouts: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)

    package init(_ command: [String], timeout: Duration = InspectionRule.defaultTimeout) {
        self.command = command
        self.timeout = timeout
    }
}

extension CheckRules {
    /// Somebody has to ask for something beside the content.
    package var hasProofs: Bool { sha256 != nil || minisign != nil }

    /// The requests for what lies beside the content, as far as they are configured, without the source's header fields.
    package var proofSources: [HTTPSource] { [sha256?.list, minisign?.signature].compactMap(\.self) }

    /// What is configured of it, for a binding.
    var proofLines: [String] {
        var lines: [String] = []
        if let rule = sha256 { lines.append("sha256:\(rule.list.url) \(rule.name ?? "")") }
        if let rule = minisign {
            let key =
                switch rule.key {
                case .key(let key): key.description
                case .file(let path): path
                }
            lines.append("minisign:\(key) \(rule.signature?.url ?? "")")
        }
        if let rule = exec { lines.append("exec:\(rule.command)") }
        return lines
    }
}

extension HTTPSource {
    /// The last part of the URL's path, with its percent-encoding taken off; nil: there is none.
    package var fileName: String? {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        guard let start = path.firstRange(of: "://")?.upperBound, let slash = path[start...].lastIndex(of: "/") else {
            return nil
        }
        let name = Self.decoded(path[path.index(after: slash)...])
        return name.isEmpty ? nil : name
    }

    /// The same with something after its path.
    func adding(_ suffix: String) -> HTTPSource {
        var source = self
        let path = url.prefix { $0 != "?" }
        source.url = path + suffix + url[path.endIndex...]
        return source
    }

    /// The request for what lies beside this one's answer. At the same origin it is made as this one is, with its header
    /// fields and by its way; another origin gets nothing of that.
    ///
    /// - Parameter resolve: the URL that a reference means at a URL.
    func beside(_ url: String, host: String, resolve: (_ reference: String, _ base: String) -> WebAddress?)
        -> HTTPSource
    {
        var source = HTTPSource(url: url, host: host)
        guard let home = resolve(self.url, self.url)?.origin, home == resolve(url, url)?.origin else { return source }
        source.headers = headers
        source.unixSocket = unixSocket
        source.clientCertificate = clientCertificate
        source.certificateAuthority = certificateAuthority
        return source
    }

    private static func decoded(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = String(decoding: rest.prefix(2), as: UTF8.self)
            if byte == UInt8(ascii: "%"), digits.utf8.count == 2, let value = UInt8(digits, radix: 16) {
                bytes.append(value)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
