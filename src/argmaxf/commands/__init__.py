"""The parts of the argmaxf command, one module each: parse, call one public function, print."""
