"""What a commit says: file trees, the catalog of config objects, and the questions a render asked of them."""
