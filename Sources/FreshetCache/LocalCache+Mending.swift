/// Mending what an examination found. What is damaged goes, so that the next request is unconditional; what the cache did
/// not make is moved aside, since it may be somebody's.
extension LocalCache {
    /// Mends what was found of a pipeline. The caller holds its lock.
    ///
    /// - Returns: what it offers then.
    func mend(
        _ pipeline: String, _ examination: inout CacheExamination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> Generation? {
        let row = try withIndex { (index) throws(SQLiteError) in try index.pipeline(pipeline) }
        let isCopyWhole = !examination.findings.contains { [.copyMissing, .copyDamaged].contains($0.kind) }
        let directory = layout.generations(of: pipeline)
        if try !isDirectory(directory) { try takeAway(directory) }
        // Until index and files agree again.
        state.isSuspect = true
        state.refuted = nil
        // The copy first: whether it is the file of a generation is seen as long as that has its name.
        examination.mend { (finding) throws(CacheError) in
            switch finding.kind {
            case .copyDamaged: try discard(finding.path)
            case .copyApart: try joinCopy(of: row, at: finding.path)
            default: break
            }
        }
        examination.mend { (finding) throws(CacheError) in
            switch finding.kind {
            case .contentDamaged, .contentMissing:
                let isCopy = isCopyWhole && finding.generation == row?.current && row?.withdrawnAt == nil
                try removeContent(finding, of: row, restoringFrom: isCopy ? row?.file : nil)
            case .contentUnknown, .unfinished: try remove(finding.path)
            case .refusedDamaged:
                try remove(finding.path)
                if let row { try withIndex { (index) throws(SQLiteError) in try index.setRefused(nil, of: row.id) } }
            case .stray: try takeAway(finding.path)
            case .setDamaged: if let row { try clearLink(of: row) }
            // Done, or put back below, or not to be mended here.
            case .copyDamaged, .copyApart, .copyMissing, .pinLost, .indexDamaged: break
            }
        }
        try onFiles { (files) throws(SystemCallError) in try self.makeDirectories(for: pipeline, files) }
        _ = try reconcile(pipeline)
        try measure()
        state.isSuspect = false
        guard let offer = try verifiedOffer(of: pipeline, &state) else { return nil }
        if examination.findings.contains(where: { $0.kind == .setDamaged }) {
            try agreeSet(with: offer, verifiesAll: true)
        }
        return offer.generation(path: layout.reader(offer.file), turn: state.takeTurn())
    }

    /// Removes a name that the cache made; what else stands there is moved aside.
    func remove(_ path: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in
            if path.hasPrefix(self.layout.sets + "/"), try files.status(path)?.isDirectory == true {
                return try files.removeFlatDirectory(path)
            }
            guard try files.status(path)?.isRegularFile == true else { return try self.takeAway(path, files) }
            try files.unlink(path)
        }
    }

    /// Takes a name away that nothing needs. One of content that is kept goes; all else is moved aside.
    func discard(_ path: String) throws(CacheError) {
        if try isKept(path) { try remove(path) } else { try takeAway(path) }
    }

    /// Moves something aside as it is, whatever it is.
    func takeAway(_ path: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in try self.takeAway(path, files) }
    }

    func takeAway(_ path: String, _ files: any FileSystem) throws(SystemCallError) {
        guard let status = try files.status(path) else { return }
        _ = try files.makeDirectory(layout.strays, mode: CacheLayout.generationsMode)
        let name = path.split(separator: "/").last ?? ""
        // The inode is no other stray's, and so the name is free, or what is there is the same.
        try files.rename(path, to: layout.strays + "/\(status.identity.inode)-\(name.prefix(200))")
    }

    /// The content of a generation is not there any more. Where readers still have it, it gets its name again.
    private func removeContent(
        _ finding: CacheFinding, of row: IndexedPipeline?, restoringFrom file: String?
    ) throws(CacheError) {
        guard let row, let number = finding.generation else { return }
        if finding.kind == .contentDamaged { try remove(finding.path) }
        guard let file else {
            return try withIndex { (index) throws(SQLiteError) in try index.forget(generation: number, of: row.id) }
        }
        let reader = layout.reader(file)
        let identity = try onFiles { (files) throws(SystemCallError) in
            try self.makeDirectories(for: row.name, files)
            try files.link(reader, to: finding.path)
            try files.synchronizeDirectory(self.layout.generations(of: row.name))
            return try files.status(reader)?.identity
        }
        try note(identity, of: number, row)
    }

    /// Makes the copy the file of its generation again.
    private func joinCopy(of row: IndexedPipeline?, at path: String) throws(CacheError) {
        guard let row, let number = row.current,
            let known = try withIndex({ (index) throws(SQLiteError) in try index.generation(number, of: row.id) })
        else { return }
        let token = makeToken()
        defer { release(token) }
        let identity = try onFiles { (files) throws(SystemCallError) in
            try files.replace(
                path, withLinkTo: self.layout.generation(known.content, of: row.name),
                by: self.layout.readerTemporary(token))
            try files.synchronizeDirectory(self.layout.current)
            return try files.status(path)?.identity
        }
        try note(identity, of: number, row)
    }

    private func note(_ identity: FileIdentity?, of number: Int64, _ row: IndexedPipeline) throws(CacheError) {
        guard let identity else { return }
        try withIndex { (index) throws(SQLiteError) in
            guard var generation = try index.generation(number, of: row.id) else { return }
            generation.identity = identity
            try index.put(generation, of: row.id)
        }
    }
}

extension CacheExamination {
    /// Mends one finding after the other; what cannot be says why.
    mutating func mend(_ body: (CacheFinding) throws(CacheError) -> Void) {
        for index in findings.indices {
            do throws(CacheError) {
                try body(findings[index])
            } catch {
                findings[index].detail = error.description
            }
        }
    }
}
