/// An event of the history as bytes: its time, its kind, and the fields that it has, each after its tag.
///
/// Only the process that wrote the bytes reads them, so their format may change with each version.
extension ControlEvent {
    private enum Field: UInt8 {
        case end, pipeline, signal, source, number, detail, run, state, waitingFor, waitingUntil
    }

    /// Writes all fields but the generation: the run has its number. The rest is large, and clients can request it.
    func write(to writer: inout FieldWriter) {
        writer.write(at)
        writer.write(kind)
        writer.write(Field.pipeline.rawValue, pipeline)
        writer.write(Field.signal.rawValue, signal)
        writer.write(Field.source.rawValue, source)
        writer.write(Field.number.rawValue, number)
        writer.write(Field.detail.rawValue, detail)
        if let run {
            writer.write(tag: Field.run.rawValue)
            run.write(to: &writer, since: at)
        }
        writer.write(Field.state.rawValue, state)
        writer.write(Field.waitingFor.rawValue, waitingFor)
        writer.write(Field.waitingUntil.rawValue, waitingUntil)
        writer.write(tag: Field.end.rawValue)
    }

    init(from reader: inout FieldReader) {
        self.init(at: reader.number(), kind: reader.value())
        while let field = Field(rawValue: reader.tag()) {
            switch field {
            case .end: return
            case .pipeline: pipeline = reader.text()
            case .signal: signal = reader.text()
            case .source: source = reader.text()
            case .number: number = reader.number()
            case .detail: detail = reader.text()
            case .run: run = RunStatus(from: &reader, since: at)
            case .state: state = reader.value()
            case .waitingFor: waitingFor = reader.value()
            case .waitingUntil: waitingUntil = reader.number()
            }
        }
    }
}

extension RunStatus {
    private enum Field: UInt8 {
        case end, cause, duration, outcome, generation, failure, failureKind, httpStatus, retryAfter, requests, bytes
        case mirror, publicFailure
    }

    /// - Parameter time: the time of the event. Times of the run are written as the difference, which has fewer bytes.
    fileprivate func write(to writer: inout FieldWriter, since time: Int64) {
        writer.write(number)
        writer.write(started &- time)
        for cause in causes {
            writer.write(tag: Field.cause.rawValue)
            cause.write(to: &writer, since: time)
        }
        writer.write(Field.duration.rawValue, durationUSec)
        writer.write(Field.outcome.rawValue, outcome)
        writer.write(Field.generation.rawValue, generation)
        writer.write(Field.failure.rawValue, failure)
        writer.write(Field.failureKind.rawValue, failureKind)
        writer.write(Field.httpStatus.rawValue, httpStatus)
        writer.write(Field.retryAfter.rawValue, retryAfterUSec)
        writer.write(Field.requests.rawValue, requests)
        writer.write(Field.bytes.rawValue, bytes)
        writer.write(Field.mirror.rawValue, mirror)
        writer.write(Field.publicFailure.rawValue, publicFailure)
        writer.write(tag: Field.end.rawValue)
    }

    fileprivate init(from reader: inout FieldReader, since time: Int64) {
        self.init(number: reader.number(), started: reader.number() &+ time)
        while let field = Field(rawValue: reader.tag()) {
            switch field {
            case .end: return
            case .cause: causes.append(CauseStatus(from: &reader, since: time))
            case .duration: durationUSec = reader.number()
            case .outcome: outcome = reader.value()
            case .generation: generation = reader.number()
            case .failure: failure = reader.text()
            case .failureKind: failureKind = reader.text()
            case .httpStatus: httpStatus = reader.number()
            case .retryAfter: retryAfterUSec = reader.number()
            case .requests: requests = reader.number()
            case .bytes: bytes = reader.number()
            case .mirror: mirror = reader.text()
            case .publicFailure: publicFailure = reader.text()
            }
        }
    }
}

extension CauseStatus {
    private enum Field: UInt8 {
        case end, number, detail
    }

    fileprivate func write(to writer: inout FieldWriter, since time: Int64) {
        writer.write(signal)
        writer.write(count)
        writer.write(first &- time)
        writer.write(last &- time)
        writer.write(Field.number.rawValue, number)
        writer.write(Field.detail.rawValue, detail)
        writer.write(tag: Field.end.rawValue)
    }

    fileprivate init(from reader: inout FieldReader, since time: Int64) {
        self.init(
            signal: reader.text(), count: reader.number(), first: reader.number() &+ time,
            last: reader.number() &+ time)
        while let field = Field(rawValue: reader.tag()) {
            switch field {
            case .end: return
            case .number: number = reader.number()
            case .detail: detail = reader.text()
            }
        }
    }
}
