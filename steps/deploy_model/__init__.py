"""deploy_model: the version runs behind the gateway, at weight 0, and answers right."""
