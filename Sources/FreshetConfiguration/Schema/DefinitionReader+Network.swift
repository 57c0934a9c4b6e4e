import FreshetPipelines

extension DefinitionReader {
    /// `refresh.needs-network`: a word, an address, or keys of its own. Nil if it is not there or faulty.
    mutating func networkNeed(in section: Section) -> NetworkNeed? {
        guard let entry = section["needs-network"] else { return nil }
        guard case .mapping = entry.value.content else { return value("needs-network", in: section, .networkNeed) }
        guard let network = self.section(.needsNetwork, "needs-network", in: section) else { return nil }
        let status = value("status", in: network, .integer(200...599))
        guard network["probe"] != nil else {
            missing(
                network.location, network.name.path, "'needs-network' has no 'probe'",
                remedy: "name a URL that answers with no redirect: probe: https://…; or write true, false or an address"
            )
            return nil
        }
        guard var probe = value("probe", in: network, .probe) else { return nil }
        probe.status = status
        return .probe(probe)
    }
}

extension ValueKind where Value == NetworkProbe {
    /// The URL of a probe. It carries no credentials, whoever would wish it to.
    static let probe = ValueKind(name: "a URL such as https://example.com/204") { scalar throws(ValueError) in
        guard !scalar.text.contains(where: { "{}".contains($0) }) else {
            throw ValueError("holds a brace", remedy: "a probe has no places for values; a literal brace is %7B or %7D")
        }
        do throws(ValueError) {
            return NetworkProbe(url: scalar.text, host: try URLText.host(of: scalar.text))
        } catch {
            guard error == .userInformation else { throw error }
            throw ValueError(error.message, remedy: "remove what stands before '@': a probe carries no credentials")
        }
    }
}

extension ValueKind where Value == NetworkNeed {
    fileprivate static let networkNeed = ValueKind(name: "true, false, an address or {probe: URL}") {
        scalar throws(ValueError) in
        if let flag = try? ValueKind<Bool>.boolean.read(scalar) { return flag ? .yes : .no }
        guard !scalar.text.contains("://") else {
            throw ValueError("has to be true, false or an address, not a URL", remedy: "write {probe: URL}")
        }
        guard scalar.text.contains(where: { ":.".contains($0) }) else { throw .notBoolean(scalar) }
        return .address(try ValueKind<String>.address.read(scalar))
    }
}
