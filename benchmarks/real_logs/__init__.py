"""Two public logs of hotel searches, from the raw file to a verdict: `python -m benchmarks.real_logs --data FOLDER`."""
