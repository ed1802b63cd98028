"""Where trials run: fresh processes, time-outs, streams, and the record each leaves."""
