package import FreshetVarlink

extension ControlError {
    private enum Name {
        static let noSuchPipeline = ControlInterface.name + ".NoSuchPipeline"
        static let pipelineInvalid = ControlInterface.name + ".PipelineInvalid"
        static let noGeneration = ControlInterface.name + ".NoGeneration"
        static let withdrawn = ControlInterface.name + ".Withdrawn"
        static let noSuchGeneration = ControlInterface.name + ".NoSuchGeneration"
        static let damagedGeneration = ControlInterface.name + ".DamagedGeneration"
        static let notReadable = ControlInterface.name + ".NotReadable"
        static let noCandidate = ControlInterface.name + ".NoCandidate"
        static let otherCandidate = ControlInterface.name + ".OtherCandidate"
        static let pinned = ControlInterface.name + ".Pinned"
        static let noSuchSignal = ControlInterface.name + ".NoSuchSignal"
        static let cannotFire = ControlInterface.name + ".CannotFire"
        static let configurationRefused = ControlInterface.name + ".ConfigurationRefused"
        static let parametersRefused = ControlInterface.name + ".ParametersRefused"
        static let nothingMore = ControlInterface.name + ".NothingMore"
        static let noSuchBranch = ControlInterface.name + ".NoSuchBranch"
        static let severalBranches = ControlInterface.name + ".SeveralBranches"
        static let cannotLoadMore = ControlInterface.name + ".CannotLoadMore"
        static let tryLater = ControlInterface.name + ".TryLater"
        static let failed = ControlInterface.name + ".Failed"
        static let busy = ControlInterface.name + ".Busy"
        static let notStarted = ControlInterface.name + ".NotStarted"
    }

    /// The error as a Varlink reply.
    package var reply: VarlinkErrorReply {
        switch self {
        case .noSuchPipeline(let name, let suggestion, let file):
            Self.reply(Name.noSuchPipeline, ControlMessage.NoSuchName(name: name, suggestion: suggestion, file: file))
        case .invalidPipeline(let name): Self.reply(Name.pipelineInvalid, ControlMessage.Name(name: name))
        case .noGeneration(let name): Self.reply(Name.noGeneration, ControlMessage.Name(name: name))
        case .withdrawn(let name, let number, let since):
            Self.reply(Name.withdrawn, ControlMessage.Withdrawn(name: name, number: number, since: since))
        case .noSuchGeneration(let name, let number, let kept):
            Self.reply(
                Name.noSuchGeneration, ControlMessage.NoSuchGeneration(name: name, number: number, kept: kept))
        case .damagedGeneration(let name, let number):
            Self.reply(Name.damagedGeneration, ControlMessage.Numbered(name: name, number: number))
        case .notReadable(let name, let number):
            Self.reply(Name.notReadable, ControlMessage.Numbered(name: name, number: number))
        case .noCandidate(let name): Self.reply(Name.noCandidate, ControlMessage.Name(name: name))
        case .otherCandidate(let name, let digest):
            Self.reply(Name.otherCandidate, ControlMessage.Candidate(name: name, digest: digest))
        case .pinned(let name, let number):
            Self.reply(Name.pinned, ControlMessage.Numbered(name: name, number: number))
        case .noSuchSignal(let name, let suggestion):
            Self.reply(Name.noSuchSignal, ControlMessage.NoSuchName(name: name, suggestion: suggestion))
        case .cannotFire(let name): Self.reply(Name.cannotFire, ControlMessage.Name(name: name))
        case .configurationRefused(let diagnostics):
            Self.reply(Name.configurationRefused, ControlMessage.Diagnostics(diagnostics: diagnostics))
        case .parametersRefused(let name, let refusals):
            Self.reply(Name.parametersRefused, ControlMessage.InvalidParameters(name: name, refusals: refusals))
        case .nothingMore(let name, let path):
            Self.reply(Name.nothingMore, ControlMessage.Branch(name: name, path: path))
        case .noSuchBranch(let name, let path, let suggestion):
            Self.reply(
                Name.noSuchBranch, ControlMessage.Branch(name: name, path: path, suggestion: suggestion))
        case .severalBranches(let name, let more):
            Self.reply(Name.severalBranches, ControlMessage.Branches(name: name, more: more))
        case .cannotLoadMore(let name, let reason):
            Self.reply(Name.cannotLoadMore, ControlMessage.NamedReason(name: name, reason: reason))
        case .tryLater(let hint): Self.reply(Name.tryLater, hint)
        case .failed(let name, let reason):
            Self.reply(Name.failed, ControlMessage.Failure(name: name, reason: reason))
        case .busy(let reason): Self.reply(Name.busy, ControlMessage.Reason(reason: reason))
        case .notStarted(let reason): Self.reply(Name.notStarted, ControlMessage.Reason(reason: reason))
        case .permissionDenied: .permissionDenied
        case .invalidParameter(let name): .invalidParameter(name)
        }
    }

    private static func reply(_ name: String, _ parameters: some Encodable) -> VarlinkErrorReply {
        // Texts and integers can always be encoded as JSON. If encoding failed, the name would still identify the
        // error.
        VarlinkErrorReply(name, parameters: (try? VarlinkParameters(encoding: parameters)) ?? .none)
    }

    /// Reads an error reply; nil if the error is not one of the interface.
    package init?(_ error: VarlinkErrorReply) {
        func parameters<Value: Decodable>(_ type: Value.Type) -> Value? { try? error.parameters.decode(as: type) }
        switch error.name {
        case Name.noSuchPipeline:
            guard let value = parameters(ControlMessage.NoSuchName.self) else { return nil }
            self = .noSuchPipeline(name: value.name, suggestion: value.suggestion, file: value.file)
        case Name.pipelineInvalid:
            guard let value = parameters(ControlMessage.Name.self) else { return nil }
            self = .invalidPipeline(name: value.name)
        case Name.noGeneration:
            guard let value = parameters(ControlMessage.Name.self) else { return nil }
            self = .noGeneration(name: value.name)
        case Name.withdrawn:
            guard let value = parameters(ControlMessage.Withdrawn.self) else { return nil }
            self = .withdrawn(name: value.name, number: value.number, since: value.since)
        case Name.noSuchGeneration:
            guard let value = parameters(ControlMessage.NoSuchGeneration.self) else { return nil }
            self = .noSuchGeneration(name: value.name, number: value.number, kept: value.kept)
        case Name.damagedGeneration, Name.pinned:
            guard let value = parameters(ControlMessage.Numbered.self), let number = value.number else { return nil }
            self =
                error.name == Name.pinned
                ? .pinned(name: value.name, number: number) : .damagedGeneration(name: value.name, number: number)
        case Name.notReadable:
            guard let value = parameters(ControlMessage.Numbered.self) else { return nil }
            self = .notReadable(name: value.name, number: value.number)
        case Name.noCandidate:
            guard let value = parameters(ControlMessage.Name.self) else { return nil }
            self = .noCandidate(name: value.name)
        case Name.otherCandidate:
            guard let value = parameters(ControlMessage.Candidate.self), let digest = value.digest else { return nil }
            self = .otherCandidate(name: value.name, digest: digest)
        case Name.noSuchSignal:
            guard let value = parameters(ControlMessage.NoSuchName.self) else { return nil }
            self = .noSuchSignal(name: value.name, suggestion: value.suggestion)
        case Name.cannotFire:
            guard let value = parameters(ControlMessage.Name.self) else { return nil }
            self = .cannotFire(name: value.name)
        case Name.configurationRefused:
            guard let value = parameters(ControlMessage.Diagnostics.self) else { return nil }
            self = .configurationRefused(value.diagnostics)
        case Name.parametersRefused:
            guard let value = parameters(ControlMessage.InvalidParameters.self) else { return nil }
            self = .parametersRefused(name: value.name, refusals: value.refusals)
        case Name.nothingMore:
            guard let value = parameters(ControlMessage.Branch.self) else { return nil }
            self = .nothingMore(name: value.name, path: value.path)
        case Name.noSuchBranch:
            guard let value = parameters(ControlMessage.Branch.self) else { return nil }
            self = .noSuchBranch(name: value.name, path: value.path, suggestion: value.suggestion)
        case Name.severalBranches:
            guard let value = parameters(ControlMessage.Branches.self) else { return nil }
            self = .severalBranches(name: value.name, more: value.more)
        case Name.cannotLoadMore:
            guard let value = parameters(ControlMessage.NamedReason.self) else { return nil }
            self = .cannotLoadMore(name: value.name, reason: value.reason)
        case Name.tryLater:
            guard let value = parameters(TryLaterHint.self) else { return nil }
            self = .tryLater(value)
        case Name.failed:
            guard let value = parameters(ControlMessage.Failure.self) else { return nil }
            self = .failed(name: value.name, reason: value.reason)
        case Name.busy, Name.notStarted:
            guard let value = parameters(ControlMessage.Reason.self) else { return nil }
            self = error.name == Name.busy ? .busy(value.reason) : .notStarted(value.reason)
        case VarlinkErrorReply.Name.permissionDenied: self = .permissionDenied
        case VarlinkErrorReply.Name.invalidParameter:
            let names = parameters([String: String].self)
            self = .invalidParameter(names?["parameter"] ?? "")
        default: return nil
        }
    }
}
