/// The names of directories of several files: they contain the number of the generation, but not its digest.
///
/// Every user can read the target of the link, but must not learn the digest of content that only some users may read:
/// a user who guesses the content could use the digest to verify the guess. So the name has the digest of a secret and
/// of the content's digest. Each pipeline has its own secret, which is lost with the index; then the directories are
/// made again.
extension LocalCache {
    /// The key of the secret among the small values of a pipeline.
    private static let setSecretKey = "set-secret"
    private static let setSecretBytes = 32

    /// The name of a generation's directory: its number, and a digest that replaces that of the content.
    func setName(of content: StoredContent, in pipeline: String) throws(CacheError) -> StoredContent {
        StoredContent(
            number: content.number, digest: try ContentDigest(of: try setSecret(of: pipeline) + content.digest.bytes))
    }

    private func setSecret(of pipeline: String) throws(CacheError) -> [UInt8] {
        let known = try withIndex { (index) throws(SQLiteError) in try index.state(Self.setSecretKey, of: pipeline) }
        if let known, known.count == Self.setSecretBytes { return known }
        var generator = SystemRandomNumberGenerator()
        let made = (0..<Self.setSecretBytes).map { _ in UInt8.random(in: 0...255, using: &generator) }
        let isStored = try transaction { (index) throws(SQLiteError) in
            try index.setState(made, for: Self.setSecretKey, of: try index.ensurePipeline(pipeline).id)
        }
        guard isStored else { throw .stateLimit(key: Self.setSecretKey) }
        return made
    }
}
