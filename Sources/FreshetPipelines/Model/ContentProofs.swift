/// The checksum that the content must have.
package enum ChecksumRule: Hashable, Sendable {
    /// A list that is published beside the content. Its URL may have placeholders for parameters; its header fields
    /// come from the source. `name` is the content's file name in the list; nil: the file name of the source's URL.
    case list(HTTPSource, name: String? = nil)
    /// This checksum: 64 hexadecimal digits in lower case.
    case digest(String)

    /// The longest list, in bytes: enough for some ten thousand files.
    package static let listLimit: UInt64 = 1 << 20

    /// The request for the list; nil: none is needed.
    var list: HTTPSource? { if case .list(let list, _) = self { list } else { nil } }
}

/// A signature that is published beside the content, and the key that must have made it.
package struct SignatureRule: Hashable, Sendable {
    package enum Key: Hashable, Sendable {
        case key(MinisignKey)
        /// The absolute path of a key file as minisign(1) writes it; the file is read with each check.
        case file(String)
    }

    package var key: Key
    /// The request for the signature; nil: the source's URL with ``suffix`` after its path.
    package var signature: HTTPSource?

    /// The suffix that minisign(1) appends to a file name.
    package static let suffix = ".minisig"
    /// The longest file of a signature, in bytes: minisign(1) takes 8,192 of a trusted comment.
    package static let signatureLimit: UInt64 = 16 << 10
    /// The longest content, in bytes, for a legacy signature. A legacy signature covers the content itself instead of a
    /// digest, so the whole content must be in memory.
    package static let wholeLimit = 64 << 20

    package init(_ key: Key, signature: HTTPSource? = nil) {
        self.key = key
        self.signature = signature
    }
}

/// A program that inspects a snapshot before it becomes the copy.
package struct InspectionRule: Hashable, Sendable {
    /// An absolute path and arguments; there is no shell.
    package var command: [String]
    /// The longest time that the program may take.
    package var timeout: Duration

    /// The timeout unless configured.
    package static let defaultTimeout: Duration = .seconds(30)
    /// The allowed timeouts.
    package static let timeouts: ClosedRange<Duration> = .seconds(1) ... .seconds(3_600)

    package init(_ command: [String], timeout: Duration = InspectionRule.defaultTimeout) {
        self.command = command
        self.timeout = timeout
    }
}

extension CheckRules {
    /// Whether a checksum or a signature proves the content.
    package var hasProofs: Bool { sha256 != nil || minisign != nil }

    /// The configured requests for files beside the content, without the source's header fields.
    package var proofSources: [HTTPSource] {
        // Most checks have no proofs.
        if sha256 == nil, minisign == nil { return [] }
        return [sha256?.list, minisign?.signature].compactMap(\.self)
    }

    /// The configured rules as lines of a binding.
    var proofLines: [String] {
        var lines: [String] = []
        switch sha256 {
        case .list(let list, let name)?: lines.append("sha256:\(list.url) \(name ?? "")")
        case .digest(let digest)?: lines.append("sha256:\(digest)")
        case nil: break
        }
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
    /// The last segment of the URL's path, percent-decoded; nil: there is none.
    package var fileName: String? {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        guard let start = path.firstRange(of: "://")?.upperBound, let slash = path[start...].lastIndex(of: "/") else {
            return nil
        }
        let name = Self.decoded(path[path.index(after: slash)...])
        return name.isEmpty ? nil : name
    }

    /// The same request with a suffix after the URL's path.
    func adding(_ suffix: String) -> HTTPSource {
        var source = self
        let path = url.prefix { $0 != "?" }
        source.url = path + suffix + url[path.endIndex...]
        return source
    }

    /// The request for a file beside this request's answer. At the same origin, it takes this request's header fields,
    /// certificates and socket; a request to another origin takes none of them. The proxy and the limit on redirects
    /// are for both.
    ///
    /// - Parameter resolve: resolves a reference against a base URL.
    func beside(_ url: String, host: String, resolve: (_ reference: String, _ base: String) -> WebAddress?)
        -> HTTPSource
    {
        var source = HTTPSource(url: url, host: host)
        source.proxy = proxy
        source.redirects = redirects
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
