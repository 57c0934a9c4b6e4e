import FreshetCache
import FreshetControl
import FreshetModel
import FreshetPipelines

extension ControlError {
    init(_ error: CacheError, of name: String) {
        switch error {
        case .pinned(let number), .pinnedGone(let number): self = .pinned(name: name, number: number)
        case .notKept(let number, let kept): self = .noSuchGeneration(name: name, number: number, kept: kept)
        case .damaged(let number): self = .damagedGeneration(name: name, number: number)
        case .noCandidate: self = .noCandidate(name: name)
        case .otherCandidate(let digest): self = .otherCandidate(name: name, digest: digest.description)
        case .nothingPublished: self = .noGeneration(name: name)
        default: self = .failed(name: name, reason: error.description)
        }
    }

    init(_ error: CacheOperations.RollbackError, of name: String) {
        switch error {
        case .cache(let error): self.init(error, of: name)
        case .definition(let failure): self = .failed(name: name, reason: failure.message)
        }
    }
}
