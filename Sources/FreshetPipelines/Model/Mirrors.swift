/// Several URLs of the same content: the first one that works is used.
package struct Mirrors: Hashable, Sendable {
    /// Which mirror is asked first.
    package enum Order: String, CaseIterable, Hashable, Sendable {
        /// As in the configuration.
        case listed
        /// The one whose answers began soonest.
        case fastest
        /// An order that is always the same for one host and pipeline, so that the hosts of a fleet spread.
        case stable
    }

    package struct Mirror: Hashable, Sendable {
        /// The absolute URL, `http` or `https`.
        package var url: String
        /// The host of the URL as written, as ``HTTPSource/host``.
        package var host: String

        package init(url: String, host: String) {
            self.url = url
            self.host = host
        }

        /// The URL for people, without its user information and its query, which may be secrets.
        package var name: String {
            // Bytes, not characters: a combining mark after an @ or a ? must not hide it.
            var parts = url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }
                .split(separator: UInt8(ascii: "/"), maxSplits: 3, omittingEmptySubsequences: false)
            if parts.count > 2, let at = parts[2].lastIndex(of: UInt8(ascii: "@")) {
                parts[2] = parts[2][at...].dropFirst()
            }
            return parts.map { String(decoding: $0, as: UTF8.self) }.joined(separator: "/")
        }
    }

    /// In the order of the configuration; at least two.
    package var list: [Mirror]
    package var order: Order

    /// More mirrors than a run can ask within the default deadline are of no use.
    package static let most = 8

    package init(_ list: [Mirror], order: Order = .listed) {
        self.list = list
        self.order = order
    }
}

extension HTTPSource {
    /// The request to each mirror; without mirrors, this request alone.
    package var alternatives: [HTTPSource] {
        guard let mirrors else { return [self] }
        return mirrors.list.map { mirror in
            var source = self
            source.mirrors = nil
            source.url = mirror.url
            source.host = mirror.host
            return source
        }
    }
}

extension PipelineDefinition {
    /// The mirrors of the source; nil: it has none.
    package var mirrors: Mirrors? {
        guard case .http(let source) = source else { return nil }
        return source.mirrors
    }

    /// The pipeline with each mirror as its only source; without mirrors, this pipeline alone.
    package var alternatives: [PipelineDefinition] {
        guard case .http(let source) = source, source.mirrors != nil else { return [self] }
        return source.alternatives.map { alternative in
            var definition = self
            definition.source = .http(alternative)
            return definition
        }
    }

    /// Whether a copy with this binding was made by this definition, from any mirror
    /// (``validatorBinding(with:)``).
    package func makes(_ binding: String, with parameters: ParameterValues) -> Bool {
        alternatives.contains { $0.validatorBinding(with: parameters) == binding }
    }
}
