import FreshetControl

extension FuzzTarget {
    /// The reader of recordings. Cost shapes repeat what a line, or a file, may have many of.
    static let recording = FuzzTarget(
        "recording",
        shapes: [
            CostShape("facts", before: header, unit: fact),
            CostShape("gaps", before: header, unit: #"{"gap":{"from":1,"to":2}}"# + "\n"),
            CostShape("pipelines", before: header, unit: #"{"pipeline":{"name":"a","source":"","signals":[]}}"# + "\n"),
            CostShape(
                "signals of a pipeline", before: header + #"{"pipeline":{"name":"a","source":"","signals":["a""#,
                unit: ",\"b\"", after: "]}}", upTo: 32_768),
            CostShape(
                "causes of a run",
                before: header
                    + #"{"event":{"at":5,"kind":"runEnded","pipeline":"a","run":{"number":1,"started":5,"causes":[{"signal":"a","count":1,"first":1,"last":1}"#,
                unit: #",{"signal":"a","count":1,"first":1,"last":1}"#, after: "]}}}", upTo: 32_768),
            CostShape("nesting", before: header + #"{"gap":"#, unit: "["),
            CostShape(
                "combining characters", before: header + #"{"source":{"name":"a"#, unit: "\u{301}\u{323}",
                after: #"","fact":""}}"#, upTo: 8_192),
            CostShape(
                "combining characters in a member", before: header + #"{"a"#, unit: "\u{301}\u{323}", after: "\":1}",
                upTo: 8_192),
            CostShape("empty lines", before: header, unit: "\n"),
        ],
        read: { input in keep(try? RecordingReader.read(input, file: "f")) },
        check: { input throws(FuzzViolation) in
            let recording: Recording
            do throws(RecordingError) {
                recording = try RecordingReader.read(input, file: "f")
            } catch {
                try hold("an error names the file", error.description.hasPrefix("f:"))
                try hold("an error is one line", !error.description.contains { $0.isNewline })
                return
            }
            try hold("the window has a length", recording.header.since < recording.header.until)
            try hold(
                "events are in order", zip(recording.events, recording.events.dropFirst()).allSatisfy { $0.at <= $1.at }
            )
            for event in recording.events {
                try hold("events are within the window", event.at >= 0 && event.at <= recording.header.until)
            }
            let text = Array(recording.text.utf8)
            let again = try? RecordingReader.read(text, file: "f")
            // What is written again may have longer lines, because it escapes more.
            if text.count < 32_768 { try hold("it is the same when it is written and read again", again == recording) }
        })

    private static let header = #"{"recording":{"version":1,"freshet":"0.1.0","since":1000,"until":2000}}"# + "\n"
    private static let fact = #"{"event":{"at":5,"kind":"fact","signal":"network","detail":"not reachable"}}"# + "\n"
}
