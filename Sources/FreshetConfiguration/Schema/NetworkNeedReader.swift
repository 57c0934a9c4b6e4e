import FreshetPipelines

/// Reads `refresh.needs-network`.
struct NetworkNeedReader {
    let reader: DefinitionReader

    /// `refresh.needs-network`: true, false, an address, or keys with values. Nil if the key is absent or invalid.
    func networkNeed(in section: Section) -> NetworkNeed? {
        guard let entry = section["needs-network"] else { return nil }
        guard case .mapping = entry.value.content else {
            return reader.value("needs-network", in: section, .networkNeed)
        }
        guard let network = reader.section(.needsNetwork, "needs-network", in: section) else { return nil }
        let status = reader.value("status", in: network, .integer(200...599))
        guard network["probe"] != nil else {
            reader.missing(
                network.location, network.name.path, "'needs-network' has no 'probe'",
                remedy: "add a URL that answers without a redirect: probe: https://…; or write true, false or an "
                    + "address")
            return nil
        }
        guard var probe = reader.value("probe", in: network, .probe) else { return nil }
        probe.status = status
        return .probe(probe)
    }
}

extension ValueKind where Value == NetworkProbe {
    /// The URL of a probe. Probes never send credentials.
    static let probe = ValueKind(name: "a URL such as https://example.com/204") { scalar throws(ValueError) in
        guard !scalar.text.contains(where: { "{}".contains($0) }) else {
            throw ValueError(
                "contains a brace", remedy: "a probe has no placeholders; write a literal brace as %7B or %7D")
        }
        do throws(ValueError) {
            return NetworkProbe(url: scalar.text, host: try URLText.host(of: scalar.text))
        } catch {
            guard error == .userInformation else { throw error }
            throw ValueError(error.message, remedy: "remove the part before '@': a probe sends no credentials")
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
