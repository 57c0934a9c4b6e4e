/// jq programs around those of a configuration: what is asked of a copy beyond whether something holds.
enum CheckProgram {
    /// How many members the last list or object has that a program finds.
    static func count(of items: String) -> String {
        // The line's end closes a comment that the program may end with.
        """
        [\(items)
        ] | last | if type == "array" or type == "object" then length \
        else error("the items are to be a list or an object, and are \\(type)") end
        """
    }

    /// How many there are if the input is a list itself.
    static let countOfList = """
        if type == "array" then length \
        else error("it is no list but \\(type); 'items' says where its items are, as in items: .entries") end
        """

    /// How many lines of a text are not empty.
    static let countOfLines = #"split("\n") | map(select(. != "" and . != "\r")) | length"#

    /// The time that a program finds last, as two outputs: seconds since 1970, and as RFC 3339 has it. It may stand as a
    /// number of seconds, as RFC 3339 or RFC 9110 (5.6.7) have it, or as a date alone, which begins at midnight UTC. jq 1.6 aborts
    /// its process at years that the C library cannot count.
    static func time(of program: String) -> String {
        #"""
        [\#(program)
        ] | last | . as $found |
        if type == "number" then . elif type == "string" then
            [
                (capture("^(?<d>[0-9]{4}-[0-9]{2}-[0-9]{2})([Tt ](?<t>[0-9]{2}:[0-9]{2}:[0-9]{2})([.][0-9]+)?(?<z>[Zz]|[+-][0-9]{2}:[0-9]{2}))?$")
                    | (.z // "Z") as $zone
                    | (.d + "T" + (.t // "00:00:00") + "Z" | fromdateiso8601)
                    - (if $zone == "Z" or $zone == "z" then 0 else
                        ($zone[1:3] | tonumber) * 3600 + ($zone[4:6] | tonumber) * 60
                        | if $zone[0:1] == "-" then -. else . end end)),
                (try (strptime("%a, %d %b %Y %H:%M:%S GMT") | mktime) catch empty)
            ]
            | if length > 0 then .[0]
            else error("\($found | tojson | .[0:100]) is no time such as 2030-01-31T12:00:00Z") end
        else error("a time is wanted, and it is \(type)") end
        | if . >= -62135596800 and . < 253402300800 then ., (floor | todate)
        else error("\($found | tojson | .[0:100]) is no time between the years 1 and 9999; a number has to be one of seconds, and 1000 milliseconds are one") end
        """#
    }
}
