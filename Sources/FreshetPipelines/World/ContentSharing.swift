package import FreshetModel

/// Shares the content of pipelines with the other machines of a fleet.
package protocol ContentSharing: Sendable {
    /// Decides where a run gets its content from. It may wait for a check of another machine.
    ///
    /// - Throws: ``FetchError/cancelled``, or why the run gets no content now.
    func content(for request: SharingRequest) async throws(FetchError) -> SharingDecision
}

/// A run of a shared pipeline that needs content.
package struct SharingRequest: Sendable {
    package var definition: PipelineDefinition
    package var parameters: ParameterValues
    package var causes: [RunCause]
    /// The current generation; nil: there is none.
    package var copy: CurrentGeneration?
}

/// Where a run gets its content from.
package enum SharingDecision: Sendable {
    /// From the origin, for this machine alone.
    case origin
    /// From the origin, for all machines or for this one. The closure must be called with the run's end.
    case originForAll(@Sendable (SharedRunEnd) async -> Void)
    /// From another machine. The closure must be called with the run's end.
    case shared(SharedContent, @Sendable (SharedRunEnd) async -> Void)
}

/// The end of a run of a shared pipeline.
package enum SharedRunEnd: Sendable {
    /// The check succeeded, and this generation has the content.
    case succeeded(CurrentGeneration, Validators)
    case failed(RunFailure)
    /// It was cancelled, or its result does not concern the other machines.
    case cancelled
}

/// Content that another machine fetched, and whose digest it signed.
package struct SharedContent: Sendable {
    package var digest: ContentDigest
    /// Bytes.
    package var size: UInt64
    package var validators: Validators
    /// Transfers the content in pieces, and verifies its digest at the end. Until it returns, the bytes do not count.
    package var read: @Sendable (_ append: ([UInt8]) async throws(RunFailure) -> Void) async throws(RunFailure) -> Void

    package init(
        digest: ContentDigest, size: UInt64, validators: Validators,
        read:
            @escaping @Sendable (_ append: ([UInt8]) async throws(RunFailure) -> Void) async throws(RunFailure) ->
            Void
    ) {
        self.digest = digest
        self.size = size
        self.validators = validators
        self.read = read
    }
}

extension PipelineDefinition {
    /// Everything that decides what the shared content is, as bytes: source, parameters, transforms and format.
    /// Machines for which it differs do not share. Checks are each machine's own.
    package func sharedProduct(with parameters: ParameterValues) -> [UInt8] {
        var binding = BindingHash(recording: true)
        // The first text is the version of this list.
        binding.add("freshet fleet 1")
        binding.add(stage, with: parameters)
        binding.add("transform:\(transform ?? "")")
        if let template { binding.add(template.bindingText) }
        binding.add("format:\(cache.format)")
        return binding.recorded
    }
}
