"""What is asked of the api server, one verb a module: create, change, apply, delete, evict, bind, report."""
