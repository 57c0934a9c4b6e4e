import FreshetControl
import FreshetPipelines
import FreshetSystemd
import Logging

/// Parameters of pipelines that the operator lists and sets.
extension Supervisor {
    func setParameters(
        of name: String, to settings: [ParameterSetting], othersToDefault: Bool, caller: String
    ) async throws(ControlError) -> ControlMessage.ParametersSet {
        let hosted = try hosted(name)
        let changed: [String]
        do throws(ParameterErrors) {
            hide(settings, of: hosted)
            changed = try await hosted.runner.change(
                settings.map { ParameterChange($0.parameter, to: $0.value) }, othersToDefault: othersToDefault)
        } catch {
            throw .parametersRefused(name: name, refusals: error.refusals.map(InvalidSetting.init))
        }
        if !changed.isEmpty {
            log.log(
                .parametersSet,
                [
                    .pipeline: .string(name), .parameters: .string(changed.joined(separator: ", ")),
                    .caller: .string(caller),
                ])
        }
        return ControlMessage.ParametersSet(
            changed: changed, parameters: hosted.runner.parameters.map(ParameterStatus.init))
    }

    /// Redacts secret values before a failed run can log them.
    private func hide(_ settings: [ParameterSetting], of hosted: RunningPipeline) {
        let secrets = settings.compactMap { setting -> String? in
            guard let value = setting.value,
                let parameter = hosted.definition.parameters.first(where: { $0.name == setting.parameter }),
                parameter.isSecret, parameter.error(of: value) == nil
            else { return nil }
            return value
        }
        if !secrets.isEmpty { redactor.setSecrets(hidden.union(secretParameters).union(secrets)) }
    }

    /// The values of parameters whose names say that they are secrets.
    var secretParameters: Set<String> {
        Set(pipelines.values.flatMap { $0.runner.parameters.filter(\.definition.isSecret).map(\.value) })
    }
}

extension ParameterStatus {
    init(_ state: ParameterState) {
        let definition = state.definition
        var choices: [String]?
        var pattern: String?
        switch definition.rule {
        case .any: break
        case .choices(let list): choices = definition.isSecret ? nil : list
        case .pattern(let text): pattern = text
        }
        self.init(
            name: definition.name, value: definition.isSecret ? nil : state.value,
            default: definition.isSecret ? nil : definition.defaultValue, isSet: state.isSet, choices: choices,
            pattern: pattern, quietUSec: definition.quiet.microseconds)
    }
}

extension InvalidSetting {
    init(_ refusal: ParameterError) {
        let reason =
            switch refusal.reason {
            case .error(let sentence): sentence
            case .unknown([]): "is unknown: the pipeline has no parameters"
            case .unknown(let known):
                "is unknown; "
                    + (NameSuggestion.closest(to: refusal.name, among: known).map { "did you mean '\($0)'?" }
                        ?? "there are \(known.joined(separator: ", "))")
            }
        self.init(parameter: refusal.name, reason: reason)
    }
}
