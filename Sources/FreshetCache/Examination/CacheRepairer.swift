import FreshetModel

/// Repairs the findings of an examination. Damaged files are removed, so that the next request is unconditional;
/// foreign files are moved aside, because they may belong to a user.
extension LocalCache {
    /// Repairs the findings of a pipeline. The caller holds the pipeline's lock.
    ///
    /// - Returns: the current generation afterwards.
    func repair(
        _ pipeline: String, _ examination: inout CacheExamination, _ state: inout PipelineEntry.State
    ) throws(CacheError) -> CurrentGeneration? {
        let row = try withIndex { (index) throws(SQLiteError) in try index.pipeline(pipeline) }
        let isCopyWhole = !examination.findings.contains { [.copyMissing, .copyDamaged].contains($0.kind) }
        let directory = layout.generations(of: pipeline)
        if try !isDirectory(directory) { try moveToStrays(directory) }
        // Suspect until index and files agree again.
        state.isSuspect = true
        state.refuted = nil
        // The copy is repaired first: its inode can be compared only as long as the generation's file has its name.
        examination.repair { (finding) throws(CacheError) in
            switch finding.kind {
            case .copyDamaged: try discard(finding.path)
            case .copyDuplicated: try joinCopy(of: row, at: finding.path)
            default: break
            }
        }
        examination.repair { (finding) throws(CacheError) in
            switch finding.kind {
            case .contentDamaged, .contentMissing:
                let isCopy = isCopyWhole && finding.generation == row?.current && row?.withdrawnAt == nil
                try removeContent(finding, of: row, restoringFrom: isCopy ? row?.file : nil)
            case .contentUnknown, .unfinished: try remove(finding.path)
            case .rejectedDamaged:
                try remove(finding.path)
                if let row { try withIndex { (index) throws(SQLiteError) in try index.setRejected(nil, of: row.id) } }
            case .stray: try moveToStrays(finding.path)
            case .setDamaged: if let row { try clearLink(of: row) }
            // Repaired above or below, or not repairable here.
            case .copyDamaged, .copyDuplicated, .copyMissing, .pinLost, .indexDamaged: break
            }
        }
        try onFiles { (files) throws(SystemCallError) in try self.makeDirectories(for: pipeline, files) }
        _ = try reconcile(pipeline)
        try measure()
        state.isSuspect = false
        guard let publication = try verifiedPublication(of: pipeline, &state) else { return nil }
        if examination.findings.contains(where: { $0.kind == .setDamaged }) {
            try agreeSet(with: publication, verifiesAll: true)
        }
        return publication.generation(path: layout.reader(publication.file), revision: state.nextRevision())
    }

    /// Removes a file that the cache made; any other object at this path is moved aside.
    func remove(_ path: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in
            if path.hasPrefix(self.layout.sets + "/"), try files.status(path)?.isDirectory == true {
                return try files.removeFlatDirectory(path)
            }
            guard try files.status(path)?.isRegularFile == true else { return try self.moveToStrays(path, files) }
            try files.unlink(path)
        }
    }

    /// Removes a name that is not needed, if its content is kept; otherwise moves the object aside.
    func discard(_ path: String) throws(CacheError) {
        if try isKept(path) { try remove(path) } else { try moveToStrays(path) }
    }

    /// Moves an object of any kind aside, unchanged.
    func moveToStrays(_ path: String) throws(CacheError) {
        try onFiles { (files) throws(SystemCallError) in try self.moveToStrays(path, files) }
    }

    func moveToStrays(_ path: String, _ files: any FileSystem) throws(SystemCallError) {
        guard let status = try files.status(path) else { return }
        _ = try files.makeDirectory(layout.strays, mode: CacheLayout.generationsMode)
        let name = path.split(separator: "/").last ?? ""
        // No other stray has this inode, so the name is free or belongs to the same object.
        try files.rename(path, to: layout.strays + "/\(status.identity.inode)-\(name.prefix(200))")
    }

    /// The content of a generation is missing or damaged. If the published file still has it, the generation's name is
    /// linked to that file again.
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
        try record(identity, of: number, row)
    }

    /// Makes the published file a hard link to the file of its generation again.
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
        try record(identity, of: number, row)
    }

    private func record(_ identity: FileIdentity?, of number: Int64, _ row: IndexedPipeline) throws(CacheError) {
        guard let identity else { return }
        try withIndex { (index) throws(SQLiteError) in
            guard var generation = try index.generation(number, of: row.id) else { return }
            generation.identity = identity
            try index.put(generation, of: row.id)
        }
    }
}

extension CacheExamination {
    /// Repairs each finding; if a repair fails, the finding gets the error as its detail.
    mutating func repair(_ body: (CacheFinding) throws(CacheError) -> Void) {
        for index in findings.indices {
            do throws(CacheError) {
                try body(findings[index])
            } catch {
                findings[index].detail = error.description
            }
        }
    }
}
