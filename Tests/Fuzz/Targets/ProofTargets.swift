@testable import FreshetPipelines

extension FuzzTarget {
    /// Signatures and keys of minisign(1).
    static let minisign = FuzzTarget(
        "minisign",
        shapes: [
            CostShape("lines", unit: "\n"), CostShape("a long line", unit: "A"),
            CostShape("padding", unit: "="),
            CostShape("a comment", before: "untrusted comment: ", unit: "a", after: "\nRWQ=\ntrusted comment: \n\n"),
            CostShape("carriage returns", unit: "\r"),
        ],
        read: { input in
            keep(try? MinisignSignature(input))
            keep(try? MinisignKey(file: input))
        },
        check: { input throws(FuzzViolation) in
            if let signature = try? MinisignSignature(input) {
                try hold(
                    "a signature has 64 bytes", signature.signature.count == 64 && signature.globalSignature.count == 64
                )
                try hold("a signature names a key", signature.number.count == 8)
                try hold("a comment is one line", !signature.trustedComment.contains(0x0A))
                try hold("what is signed is in the file", signature.globalMessage.count <= input.count + 64)
            }
            if let key = try? MinisignKey(file: input) {
                try hold("a key has 32 bytes", key.ed25519.count == 32 && key.number.count == 8)
                try hold("a key that is written again is the same", (try? MinisignKey(key.description)) == key)
            }
        })

    /// Lists of checksums. The name to find follows after a line with `%%`.
    static let checksumList = FuzzTarget(
        "checksum-list",
        shapes: [
            CostShape("lines", unit: "\n"), CostShape("sums", unit: "\(sum)  a\n"),
            CostShape("sums alone", unit: "\(sum)\n"), CostShape("a long name", before: "\(sum)  ", unit: "a"),
            CostShape("escapes", before: "\\\(sum)  ", unit: "\\n"), CostShape("spaces", before: sum, unit: " "),
            CostShape("parentheses", before: "SHA256 (", unit: ")", after: " = \(sum)"),
            CostShape("directories", before: "\(sum)  ", unit: "a/"),
            CostShape("combining characters", before: "\(sum)  a", unit: "\u{301}\u{323}"),
            CostShape(
                "combining characters in a directory", before: "\(sum)  ", unit: "\u{301}\u{323}", after: "/b.tar"),
        ],
        read: { input in
            let list = ChecksumList(input)
            keep(try? list.digest(of: nil))
            keep(try? list.digest(of: "a.tar"))
        },
        check: { input throws(FuzzViolation) in
            let parts = sections(of: input)
            let name = parts.count > 1 ? parts.text(1) : "a.tar"
            guard let digest = try? ChecksumList(parts[0]).digest(of: name) else { return }
            let isDigest = digest.utf8.count == 64 && digest.utf8.allSatisfy { "0123456789abcdef".utf8.contains($0) }
            try hold("a sum is 64 hexadecimal digits in lower case", isDigest)
            let text = String(decoding: parts[0].map { $0 | 0x20 }, as: UTF8.self)
            try hold("a sum stands in the list", text.utf8.count >= 64)
            guard !name.isEmpty, name != "-", !name.hasPrefix("./"), !name.contains(where: \.isNewline) else { return }
            let again = try? ChecksumList(Array("SHA256 (\(name)) = \(digest)\n".utf8)).digest(of: name)
            try hold("a sum that is written again is the same", again == digest)
        })

    private static let sum = String(repeating: "0a", count: 32)
}
